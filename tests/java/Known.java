// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.math.*;
import java.net.*;
import java.nio.charset.*;
import java.nio.file.Paths;
import java.time.*;
import java.util.*;
import java.util.concurrent.atomic.*;
import java.util.regex.Pattern;

/**
 * Objects of the JDK's classes that a trace shows; afterwards, what toString() says of each or
 * what text() says instead.
 */
public class Known {
    static final List<Object> shown = new ArrayList<>();

    static void one(Object o) {
        shown.add(o);
    }

    static class Money extends BigDecimal {
        Money(String s) {
            super(s);
        }

        @Override
        public String toString() {
            throw new AssertionError("called by the trace");
        }
    }

    static void compared(Object o) {
    }

    static void money(Money m) {
    }

    static StringBuilder builder(String s) {
        StringBuilder b = new StringBuilder(100).append(s).append("gone");
        b.setLength(s.length());
        return b;
    }

    static LongAdder adder() throws Exception {
        LongAdder a = new LongAdder();
        Thread[] all = new Thread[4];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Thread(() -> {
                for (int k = 0; k < 100_000; k++)
                    a.increment();
            });
            all[i].start();
        }
        for (Thread t : all)
            t.join();
        return a;
    }

    static void numbers() {
        for (Object o :
             new Object[] {OptionalInt.of(-5), OptionalLong.of(1L << 60), OptionalDouble.of(0.1),
                           OptionalInt.empty(), OptionalLong.empty(), OptionalDouble.empty()})
            one(o);
        String[] integers = {"0",
                             "1",
                             "-1",
                             "4294967295",
                             "4294967296",
                             "1000000000",
                             "-123456789012345678901234567890"};
        for (String s : integers)
            one(new BigInteger(s));
        one(BigInteger.ONE.shiftLeft(1023).subtract(BigInteger.ONE).negate());
        String[] decimals = {"0",
                             "0.00",
                             "12.50",
                             "-12.50",
                             "0.000001",
                             "0.0000001",
                             "1E+3",
                             "-1.25E-20",
                             "1E+2147483647",
                             "123456789012345678901234567890.123",
                             "-0.00000123456789012345678901234567890",
                             "9223372036854775807",
                             "-9223372036854775808",
                             "0E-8"};
        for (String s : decimals)
            one(new BigDecimal(s));
        one(BigDecimal.valueOf(Long.MIN_VALUE, 5));
    }

    static void times() {
        Instant[] instants = {Instant.EPOCH,
                              Instant.parse("2026-11-26T14:06:51.120Z"),
                              Instant.parse("1969-12-31T23:59:59.999999999Z"),
                              Instant.parse("2024-02-29T12:00:00.000001Z"),
                              Instant.parse("2000-03-01T00:00:00Z"),
                              Instant.parse("1900-02-28T23:59:59Z"),
                              Instant.parse("0000-01-01T00:00:00Z"),
                              Instant.parse("-0044-03-15T12:00:00Z"),
                              Instant.parse("+12345-06-07T08:09:10Z")};
        for (Instant i : instants) {
            one(i);
            one(Date.from(i));
            one(java.sql.Timestamp.from(i));
            Calendar c = new GregorianCalendar(TimeZone.getTimeZone("Asia/Tokyo"));
            c.setTimeInMillis(i.toEpochMilli());
            one(c);
        }
        for (long s : new long[] {0, 1, 59, 60, 3599, 3600, 86400, 90061, -1, -59, -61, -3600})
            for (int n : new int[] {0, 1, 500_000_000, 999_999_999})
                if (s >= 0 || n == 0 || s == -1 || s == -61) // JDK 8 has other texts for the rest
                    one(Duration.ofSeconds(s, n));
        Object[] others = {Period.ZERO,
                           Period.of(1, -2, 30),
                           Year.of(2026),
                           Year.of(-44),
                           YearMonth.of(2026, 2),
                           MonthDay.of(2, 29),
                           LocalDate.of(2026, 11, 26),
                           LocalDate.of(-44, 3, 15),
                           LocalDate.of(12345, 1, 1),
                           LocalDate.of(7, 1, 1),
                           LocalTime.MIDNIGHT,
                           LocalTime.of(23, 59, 58),
                           LocalTime.of(1, 2, 0, 1_000_000),
                           LocalTime.of(1, 2, 3, 4),
                           LocalTime.of(1, 2, 3, 4_000),
                           LocalDateTime.of(2026, 11, 26, 14, 6),
                           OffsetTime.of(1, 2, 3, 0, ZoneOffset.ofHours(-5)),
                           OffsetDateTime.of(2026, 11, 26, 14, 6, 51, 5, ZoneOffset.UTC),
                           ZoneOffset.ofHoursMinutes(5, 30),
                           ZoneId.of("Europe/Zurich"),
                           ZonedDateTime.of(2026, 11, 26, 14, 6, 51, 0, ZoneId.of("Europe/Zurich")),
                           ZonedDateTime.of(2026, 7, 1, 0, 0, 0, 0, ZoneOffset.UTC)};
        for (Object o : others)
            one(o);
    }

    static void texts() throws Exception {
        Object[] others = {UUID.fromString("123e4567-e89b-12d3-a456-426614174000"), new UUID(-1, 1), new File("/tmp/a \"b\""), new File(""),
                Paths.get("/tmp/x"), Paths.get(""), Paths.get("rel/../x.txt"),
                URI.create("http://user@host:8080/a/b?q=1#f"), URI.create("mailto:a@b.c"), URI.create("a/b"), URI.create("http://[::1]/"),
                URI.create("http://h/a/b").resolve("../c"), new URI("http", "h", "/a b", "x y"), new URL("http://h:1/p?q#r"), new URL("file:/tmp/x"),
                TimeZone.getTimeZone("Europe/Zurich"), new SimpleTimeZone(3600000, "own"), Currency.getInstance("CHF"), Pattern.compile("a\"*"),
                Locale.US, Locale.GERMAN, Locale.ROOT, new Locale("", "CH"), new Locale("no", "NO", "NY"), Locale.forLanguageTag("zh-Hant-TW"),
                Locale.forLanguageTag("de-CH-u-ca-japanese"), Locale.forLanguageTag("th-TH-u-nu-thai"), Locale.forLanguageTag("sr-Latn-RS-x-own"),
                InetAddress.getByName("2001:db8::a0"), InetAddress.getByAddress("six", InetAddress.getByName("::1").getAddress()),
                Inet6Address.getByAddress(null, InetAddress.getByName("fe80::1").getAddress(), 3),
                new InetSocketAddress(InetAddress.getByAddress("name", new byte[] {127, 0, 0, 1}), 80), new InetSocketAddress(InetAddress.getByName("::1"), 8080),
                InetSocketAddress.createUnresolved("nowhere.example", 443),
                InetAddress.getByAddress("name", new byte[] {(byte) 192, 0, 2, 1}), InetAddress.getByAddress(new byte[] {127, 0, 0, 1}),
                StandardCharsets.UTF_16LE, Charset.forName("windows-1252"), builder("hello"), builder("w\u00efd\u20ac \ud83d\ude00"), builder(""), new StringBuffer("buffer")};
        for (Object o : others)
            one(o);
    }

    /** Parts of lists, and parts of such parts. */
    static void sublists() throws Exception {
        List<Integer> numbers = Arrays.asList(0, 1, 2, 3, 4, 5);
        List<List<Integer>> all = new ArrayList<>(Arrays.asList(
                numbers, new ArrayList<>(numbers), new LinkedList<>(numbers), new Vector<>(numbers),
                new java.util.concurrent.CopyOnWriteArrayList<>(numbers),
                Collections.unmodifiableList(numbers),
                Collections.synchronizedList(new ArrayList<>(numbers))));
        try { // JDK 9
            @SuppressWarnings("unchecked")
            List<Integer> of = (List<Integer>) List.class.getMethod("of", Object[].class)
                                       .invoke(null, (Object) numbers.toArray());
            all.add(of);
        } catch (NoSuchMethodException e) {
            // has no List.of
        }
        for (List<Integer> l : all) {
            one(l.subList(1, 4));
            one(l.subList(4, 6));
            one(l.subList(1, 6).subList(2, 4));
            one(l.subList(3, 3));
        }
    }

    static void atomics() throws Exception {
        Object[] others = {new AtomicBoolean(true),
                           new AtomicBoolean(),
                           new AtomicInteger(-8),
                           new AtomicLong(1L << 60),
                           new AtomicIntegerArray(new int[] {1, -2, 3}),
                           new AtomicLongArray(new long[] {1L << 60}),
                           new AtomicReferenceArray<>(new Integer[] {7, 8}),
                           adder(),
                           new AtomicStampedReference<>(7, -3),
                           new AtomicMarkableReference<>(null, true)};
        for (Object o : others)
            one(o);
    }

    public static void main(String[] args) throws Exception {
        numbers();
        times();
        texts();
        sublists();
        atomics();
        for (Object o :
             new Object[] {new BigDecimal("10.5"), new BigInteger("11"), new BigDecimal("9.99"),
                           OptionalInt.of(12), new AtomicInteger(10), OptionalInt.empty(),
                           UUID.fromString("123e4567-e89b-12d3-a456-426614174000"),
                           new File("/tmp/f"), builder("abc"), new AtomicBoolean(true)})
            compared(o);
        money(new Money("1.50"));
        one(BigInteger.ONE.shiftLeft(4095));
        one(builder(new String(new char[100]).replace('\0', 'b')));
        one(new GregorianCalendar(2026, 10, 26));
        AtomicStampedReference<Object> itself = new AtomicStampedReference<>("r", 1);
        one(itself);
        itself.set(itself, 2);
        one(itself);
        shown.subList(shown.size() - 5, shown.size()).clear();
        for (Object o : shown)
            System.out.println(text(o));
    }

    /** What is to be shown, where it is not what toString() says. */
    static Object text(Object o) {
        if (o instanceof Date)
            return ((Date) o).toInstant();
        if (o instanceof Calendar)
            return ((Calendar) o).toInstant();
        if (o instanceof TimeZone)
            return ((TimeZone) o).getID();
        if (o instanceof AtomicStampedReference)
            return ((AtomicStampedReference<?>) o).getReference() + ", "
                    + ((AtomicStampedReference<?>) o).getStamp();
        if (o instanceof AtomicMarkableReference)
            return ((AtomicMarkableReference<?>) o).getReference() + ", "
                    + ((AtomicMarkableReference<?>) o).isMarked();
        return o;
    }
}
