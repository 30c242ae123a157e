/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/shapes.h"
#include "agent/capture/trace/known_texts.h"

#include "agent/instrument/probe_class.h"
#include "base/dotted.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OBJECT   ":Ljava/lang/Object;"
#define OBJECTS  ":[Ljava/lang/Object;"
#define STRING   ":Ljava/lang/String;"
#define CLASS    ":Ljava/lang/Class;"
#define STAMPED  "java.util.concurrent.atomic.AtomicStampedReference"
#define MARKABLE "java.util.concurrent.atomic.AtomicMarkableReference"
#define COWAL    "java.util.concurrent.CopyOnWriteArrayList"
#define STRIPED  "java/util/concurrent/atomic/Striped64"
#define CHM      "java/util/concurrent/ConcurrentHashMap"
#define CLQ      "java/util/concurrent/ConcurrentLinkedQueue"
#define SKIP_MAP "java/util/concurrent/ConcurrentSkipListMap"
#define LBQ      "java/util/concurrent/LinkedBlockingQueue"

/*
 * A field is "name:descriptor" of the class itself, or is preceded by another class and a dot. A
 * NULL between fields stands for a missing one. "name:S|B" is a field whose type depends on the
 * JDK.
 */
struct shape_row {
    const char *class;
    enum shape_kind kind;
    enum shape_style style;
    unsigned flags, n;
    const char *fields[9];
    void (*put)(struct buf *b, const struct value *v);
};

/* clang-format off */
static const struct shape_row rows[] = {
    {"java.lang.Boolean", SHAPE_VALUE, STYLE_PLAIN, 0, 1, {"value:Z"}},
    {"java.lang.Byte", SHAPE_VALUE, STYLE_PLAIN, 0, 1, {"value:B"}},
    {"java.lang.Character", SHAPE_VALUE, STYLE_PLAIN, 0, 1, {"value:C"}},
    {"java.lang.Short", SHAPE_VALUE, STYLE_PLAIN, 0, 1, {"value:S"}},
    {"java.lang.Integer", SHAPE_VALUE, STYLE_PLAIN, 0, 1, {"value:I"}},
    {"java.lang.Long", SHAPE_VALUE, STYLE_PLAIN, 0, 1, {"value:J"}},
    {"java.lang.Float", SHAPE_VALUE, STYLE_PLAIN, 0, 1, {"value:F"}},
    {"java.lang.Double", SHAPE_VALUE, STYLE_PLAIN, 0, 1, {"value:D"}},
    {"java.util.concurrent.atomic.AtomicInteger", SHAPE_VALUE, STYLE_OBJECT, 0, 1, {"value:I"}},
    {"java.util.concurrent.atomic.AtomicLong", SHAPE_VALUE, STYLE_OBJECT, 0, 1, {"value:J"}},
    {"java.util.concurrent.atomic.AtomicBoolean", SHAPE_VALUE, STYLE_OBJECT, SHAPE_TRUTH, 1, {"value:I"}},
    {"java.util.concurrent.atomic.LongAdder", SHAPE_SUM, STYLE_OBJECT, 0, 3,
     {STRIPED ".base:J", STRIPED ".cells:[L" STRIPED "$Cell;", STRIPED "$Cell.value:J"}},
    {"java.util.concurrent.atomic.DoubleAdder", SHAPE_SUM, STYLE_OBJECT, SHAPE_REAL, 3,
     {STRIPED ".base:J", STRIPED ".cells:[L" STRIPED "$Cell;", STRIPED "$Cell.value:J"}},
    {"java.util.concurrent.atomic.AtomicIntegerArray", SHAPE_NUMBERS, STYLE_SIZED, 0, 1, {"array:[I"}},
    {"java.util.concurrent.atomic.AtomicLongArray", SHAPE_NUMBERS, STYLE_SIZED, 0, 1, {"array:[J"}},
    {"java.util.concurrent.atomic.AtomicReferenceArray", SHAPE_ARRAY, STYLE_SIZED, 0, 2, {NULL, "array" OBJECTS}},
    {"java.lang.StringBuilder", SHAPE_CHARS, STYLE_QUOTED, 0, 3,
     {"value:[B|[C", "count:I", "coder:B|"}, trace_put_text},
    {"java.lang.StringBuffer", SHAPE_CHARS, STYLE_QUOTED, 0, 3,
     {"value:[B|[C", "count:I", "coder:B|"}, trace_put_text},
    {"java.math.BigInteger", SHAPE_PARTS, STYLE_NUMBER, SHAPE_LATE, 2, {"signum:I", "mag:[I"}, known_put_big_integer},
    {"java.math.BigDecimal", SHAPE_PARTS, STYLE_NUMBER, SHAPE_LATE, 3,
     {"intVal:Ljava/math/BigInteger;", "scale:I", "intCompact:J"}, known_put_big_decimal},
    {"java.util.UUID", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2, {"mostSigBits:J", "leastSigBits:J"}, known_put_uuid},
    {"java.time.Instant", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2, {"seconds:J", "nanos:I"}, known_put_instant},
    {"java.time.Duration", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2, {"seconds:J", "nanos:I"}, known_put_duration},
    {"java.time.Period", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 3, {"years:I", "months:I", "days:I"}, known_put_period},
    {"java.time.Year", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 1, {"year:I"}, known_put_joined},
    {"java.time.YearMonth", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2, {"year:I", "month:I|B"}, known_put_date},
    {"java.time.MonthDay", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2, {"month:I|B", "day:I|B"}, known_put_month_day},
    {"java.time.LocalDate", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 3, {"year:I", "month:S|B", "day:S|B"}, known_put_date},
    {"java.time.LocalTime", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 4, {"hour:B", "minute:B", "second:B", "nano:I"}, known_put_time},
    {"java.time.LocalDateTime", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2,
     {"date:Ljava/time/LocalDate;", "time:Ljava/time/LocalTime;"}, known_put_date_time},
    {"java.time.OffsetTime", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2,
     {"time:Ljava/time/LocalTime;", "offset:Ljava/time/ZoneOffset;"}, known_put_joined},
    {"java.time.OffsetDateTime", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2,
     {"dateTime:Ljava/time/LocalDateTime;", "offset:Ljava/time/ZoneOffset;"}, known_put_joined},
    {"java.time.ZonedDateTime", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 3,
     {"dateTime:Ljava/time/LocalDateTime;", "offset:Ljava/time/ZoneOffset;", "zone:Ljava/time/ZoneId;"}, known_put_zoned},
    {"java.time.ZoneOffset", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 1, {"id:Ljava/lang/String;"}, known_put_joined},
    {"java.time.ZoneRegion", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 1, {"id:Ljava/lang/String;"}, known_put_joined},
    {"java.sql.Timestamp", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE | SHAPE_BELOW, 2, {"fastTime:J", "nanos:I"}, known_put_timestamp},
    {"java.util.Date", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE | SHAPE_BELOW, 1, {"fastTime:J"}, known_put_java_date},
    {"java.util.Calendar", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE | SHAPE_BELOW, 2, {"time:J", "isTimeSet:Z"}, known_put_calendar},
    {"java.util.TimeZone", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE | SHAPE_BELOW, 1, {"ID" STRING}, known_put_joined},
    {"java.util.Currency", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 1, {"currencyCode" STRING}, known_put_joined},
    {"java.util.Locale", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE, 2,
     {"baseLocale:Lsun/util/locale/BaseLocale;", "localeExtensions:Lsun/util/locale/LocaleExtensions;"}, known_put_locale},
    {"sun.util.locale.LocaleExtensions", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 1, {"id" STRING}, known_put_joined},
    {"sun.util.locale.BaseLocale", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 4,
     {"language" STRING, "region" STRING, "variant" STRING, "script" STRING}, known_put_base_locale},
    {"java.net.Inet4Address", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE, 1,
     {"holder:Ljava/net/InetAddress$InetAddressHolder;"}, known_put_joined},
    {"java.net.InetAddress$InetAddressHolder", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2,
     {"hostName" STRING, "address:I"}, known_put_inet4},
    {"java.net.Inet6Address", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE, 2,
     {"java/net/InetAddress.holder:Ljava/net/InetAddress$InetAddressHolder;", "holder6:Ljava/net/Inet6Address$Inet6AddressHolder;"},
     known_put_inet6},
    {"java.net.Inet6Address$Inet6AddressHolder", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 4,
     {"ipaddress:[B", "scope_id:I", "scope_id_set:Z", "scope_ifname:Ljava/net/NetworkInterface;"}, known_put_inet6_number},
    {"java.net.NetworkInterface", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE, 1, {"name" STRING}, known_put_joined},
    {"java.net.InetSocketAddress", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE | SHAPE_BELOW, 1,
     {"holder:Ljava/net/InetSocketAddress$InetSocketAddressHolder;"}, known_put_joined},
    {"java.net.InetSocketAddress$InetSocketAddressHolder", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 3,
     {"hostname" STRING, "addr:Ljava/net/InetAddress;", "port:I"}, known_put_socket_address},
    {"java.util.regex.Pattern", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE, 1, {"pattern" STRING}, known_put_joined},
    {"java.nio.charset.Charset", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE | SHAPE_BELOW, 1, {"name" STRING}, known_put_joined},
    {"java.util.logging.Level", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE | SHAPE_BELOW, 1, {"name" STRING}, known_put_joined},
    {"java.io.File", SHAPE_PARTS, STYLE_QUOTED, SHAPE_BELOW, 1, {"path:Ljava/lang/String;"}, known_put_joined},
    {"sun.nio.fs.UnixPath", SHAPE_CHARS, STYLE_QUOTED, SHAPE_LATE, 3, {"path:[B", NULL, NULL}, known_put_path},
    {"java.net.URI", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE, 9,
     {"scheme" STRING, "schemeSpecificPart" STRING, "userInfo" STRING, "host" STRING, "port:I", "authority" STRING,
      "path" STRING, "query" STRING, "fragment" STRING}, known_put_uri},
    {"java.net.URL", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE, 5,
     {"protocol" STRING, "authority" STRING, "path" STRING, "query" STRING, "ref" STRING}, known_put_url},
    {"java.lang.Thread", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE | SHAPE_BELOW, 1, {"name" STRING}, known_put_joined},
    {"java.lang.ThreadGroup", SHAPE_PARTS, STYLE_QUOTED, SHAPE_LATE | SHAPE_BELOW, 1, {"name" STRING}, known_put_joined},
    {"java.lang.reflect.Method", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE, 2, {"clazz" CLASS, "name" STRING}, known_put_member},
    {"java.lang.reflect.Field", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE, 2, {"clazz" CLASS, "name" STRING}, known_put_member},
    {"java.lang.reflect.Constructor", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE, 1, {"clazz" CLASS}, known_put_constructor},
    {"java.lang.StackTraceElement", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE, 3,
     {"declaringClass" STRING, "methodName" STRING, "lineNumber:I"}, known_put_frame},
    {"java.lang.reflect.Parameter", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE, 3,
     {"name" STRING, "executable:Ljava/lang/reflect/Executable;", "index:I"}, known_put_parameter},
    {"java.nio.Buffer", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE | SHAPE_BELOW, 3, {"position:I", "limit:I", "capacity:I"}, known_put_buffer},
    {"java.util.concurrent.CompletableFuture", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE | SHAPE_BELOW, 1, {"result" OBJECT}, known_put_future},
    {"java.util.concurrent.CompletableFuture$AltResult", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 1, {"ex:Ljava/lang/Throwable;"}, trace_put_parts},
    {"java.util.concurrent.FutureTask", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE | SHAPE_BELOW, 2, {"state:I", "outcome" OBJECT}, known_put_task},
    {"java.util.concurrent.CountDownLatch", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE | SHAPE_BELOW, 1,
     {"sync:Ljava/util/concurrent/CountDownLatch$Sync;"}, known_put_joined},
    {"java.util.concurrent.Semaphore", SHAPE_PARTS, STYLE_HELD, SHAPE_LATE | SHAPE_BELOW, 1,
     {"sync:Ljava/util/concurrent/Semaphore$Sync;"}, known_put_joined},
    {"java.util.concurrent.locks.AbstractQueuedSynchronizer", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE | SHAPE_BELOW, 1, {"state:I"}, known_put_joined},
    {"java.lang.Enum", SHAPE_NAME, STYLE_ENUM, 0, 1, {"name:Ljava/lang/String;"}},
    {"java.lang.Throwable", SHAPE_NAME, STYLE_OBJECT, 0, 1, {"detailMessage:Ljava/lang/String;"}},
    {"java.lang.Class", SHAPE_CLASS, STYLE_PLAIN, 0, 0, {NULL}},
    {"java.util.OptionalInt", SHAPE_PARTS, STYLE_OPTIONAL, 0, 2, {"isPresent:Z", "value:I"}, known_put_optional},
    {"java.util.OptionalLong", SHAPE_PARTS, STYLE_OPTIONAL, 0, 2, {"isPresent:Z", "value:J"}, known_put_optional},
    {"java.util.OptionalDouble", SHAPE_PARTS, STYLE_OPTIONAL, 0, 2, {"isPresent:Z", "value:D"}, known_put_optional},
    {"java.util.Optional", SHAPE_FIXED, STYLE_OPTIONAL, SHAPE_SKIP_NULL, 1, {"value" OBJECT}},
    {"java.util.concurrent.atomic.AtomicReference", SHAPE_FIXED, STYLE_OBJECT, 0, 1, {"value" OBJECT}},
    {"java.lang.ref.WeakReference", SHAPE_FIXED, STYLE_OBJECT, 0, 1, {"java/lang/ref/Reference.referent" OBJECT}},
    {"java.lang.ref.SoftReference", SHAPE_FIXED, STYLE_OBJECT, 0, 1, {"java/lang/ref/Reference.referent" OBJECT}},
    {STAMPED, SHAPE_PARTS, STYLE_HELD, SHAPE_LATE, 1, {"pair:Ljava/util/concurrent/atomic/AtomicStampedReference$Pair;"}, known_put_joined},
    {STAMPED "$Pair", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2, {"reference" OBJECT, "stamp:I"}, trace_put_parts},
    {MARKABLE, SHAPE_PARTS, STYLE_HELD, SHAPE_LATE, 1, {"pair:Ljava/util/concurrent/atomic/AtomicMarkableReference$Pair;"}, known_put_joined},
    {MARKABLE "$Pair", SHAPE_PARTS, STYLE_TEXT, SHAPE_LATE, 2, {"reference" OBJECT, "mark:Z"}, trace_put_parts},

    {"java.util.ArrayList", SHAPE_ARRAY, STYLE_SIZED, 0, 2, {"size:I", "elementData" OBJECTS}},
    {"java.util.Arrays$ArrayList", SHAPE_ARRAY, STYLE_SIZED, 0, 2, {NULL, "a" OBJECTS}},
    {"java.util.Vector", SHAPE_ARRAY, STYLE_SIZED, 0, 2, {"elementCount:I", "elementData" OBJECTS}},
    {"java.util.PriorityQueue", SHAPE_ARRAY, STYLE_SIZED, 0, 2, {"size:I", "queue" OBJECTS}},
    {"java.util.concurrent.PriorityBlockingQueue", SHAPE_ARRAY, STYLE_SIZED, 0, 2, {"size:I", "queue" OBJECTS}},
    {"java.util.StringJoiner", SHAPE_ARRAY, STYLE_SIZED, SHAPE_LATE, 2, {"size:I", "elts:[Ljava/lang/String;"}},
    /* the one of JDK 8 */
    {"java.util.StringJoiner", SHAPE_FIXED, STYLE_OBJECT, SHAPE_LATE | SHAPE_SKIP_NULL, 1, {"value:Ljava/lang/StringBuilder;"}},
    {"java.util.concurrent.CopyOnWriteArrayList", SHAPE_ARRAY, STYLE_SIZED, 0, 2, {NULL, "array" OBJECTS}},
    {"java.util.ImmutableCollections$ListN", SHAPE_ARRAY, STYLE_SIZED, 0, 2, {NULL, "elements" OBJECTS}},
    {"java.util.ImmutableCollections$SetN", SHAPE_ARRAY, STYLE_SIZED, SHAPE_SKIP_NULL, 2, {"size:I", "elements" OBJECTS}},
    {"java.util.ImmutableCollections$MapN", SHAPE_ARRAY, STYLE_SIZED, SHAPE_SKIP_NULL | SHAPE_MAP, 2, {"size:I", "table" OBJECTS}},
    {"java.util.IdentityHashMap", SHAPE_ARRAY, STYLE_SIZED, SHAPE_SKIP_NULL | SHAPE_MAP, 2, {"size:I", "table" OBJECTS}},
    {"java.util.ArrayDeque", SHAPE_RING, STYLE_SIZED, 0, 4, {NULL, "elements" OBJECTS, "head:I", "tail:I"}},
    {"java.util.concurrent.ArrayBlockingQueue", SHAPE_RING, STYLE_SIZED, 0, 4, {"count:I", "items" OBJECTS, "takeIndex:I", NULL}},

    {"java.util.ImmutableCollections$List12", SHAPE_FIXED, STYLE_SIZED, SHAPE_SKIP_NULL, 2, {"e0" OBJECT, "e1" OBJECT}},
    {"java.util.ImmutableCollections$Set12", SHAPE_FIXED, STYLE_SIZED, SHAPE_SKIP_NULL, 2, {"e0" OBJECT, "e1" OBJECT}},
    {"java.util.ImmutableCollections$Map1", SHAPE_FIXED, STYLE_SIZED, SHAPE_MAP, 2, {"k0" OBJECT, "v0" OBJECT}},
    {"java.util.Collections$SingletonList", SHAPE_FIXED, STYLE_SIZED, 0, 1, {"element" OBJECT}},
    {"java.util.Collections$SingletonSet", SHAPE_FIXED, STYLE_SIZED, 0, 1, {"element" OBJECT}},
    {"java.util.Collections$SingletonMap", SHAPE_FIXED, STYLE_SIZED, SHAPE_MAP, 2, {"k" OBJECT, "v" OBJECT}},
    {"java.util.Collections$EmptyList", SHAPE_FIXED, STYLE_SIZED, 0, 0, {NULL}},
    {"java.util.Collections$EmptySet", SHAPE_FIXED, STYLE_SIZED, 0, 0, {NULL}},
    {"java.util.Collections$EmptyMap", SHAPE_FIXED, STYLE_SIZED, SHAPE_MAP, 0, {NULL}},

    {"java.util.LinkedHashMap", SHAPE_CHAIN, STYLE_SIZED, SHAPE_MAP, 9,
     {"size:I", "head:Ljava/util/LinkedHashMap$Entry;", "java/util/LinkedHashMap$Entry.after:Ljava/util/LinkedHashMap$Entry;",
      "java/util/HashMap$Node.key" OBJECT, "java/util/HashMap$Node.value" OBJECT, NULL, NULL,
      "tail:Ljava/util/LinkedHashMap$Entry;", "java/util/LinkedHashMap$Entry.before:Ljava/util/LinkedHashMap$Entry;"}},
    {"java.util.LinkedList", SHAPE_CHAIN, STYLE_SIZED, 0, 5,
     {"size:I", "first:Ljava/util/LinkedList$Node;", "java/util/LinkedList$Node.next:Ljava/util/LinkedList$Node;",
      "java/util/LinkedList$Node.item" OBJECT, NULL}},
    {"java.util.concurrent.ConcurrentLinkedQueue", SHAPE_CHAIN, STYLE_SIZED, SHAPE_SKIP_NULL, 5,
     {NULL, "head:L" CLQ "$Node;", CLQ "$Node.next:L" CLQ "$Node;", CLQ "$Node.item" OBJECT, NULL}},
    {"java.util.concurrent.LinkedBlockingQueue", SHAPE_CHAIN, STYLE_SIZED, SHAPE_SKIP_NULL, 5,
     {NULL, "head:L" LBQ "$Node;", LBQ "$Node.next:L" LBQ "$Node;", LBQ "$Node.item" OBJECT, NULL}},
    {"java.util.concurrent.ConcurrentSkipListMap", SHAPE_CHAIN, STYLE_SIZED, SHAPE_MAP | SHAPE_SKIP_NULL, 7,
     {NULL, "head:L" SKIP_MAP "$HeadIndex;|L" SKIP_MAP "$Index;", SKIP_MAP "$Node.next:L" SKIP_MAP "$Node;", SKIP_MAP "$Node.key" OBJECT,
      SKIP_MAP "$Node.val" OBJECT "|", SKIP_MAP "$Index.node:L" SKIP_MAP "$Node;", SKIP_MAP "$Node.value" OBJECT "|"}},
    {"java.util.HashMap", SHAPE_HASH, STYLE_SIZED, SHAPE_MAP, 7,
     {"size:I", "table:[Ljava/util/HashMap$Node;", "java/util/HashMap$Node.key" OBJECT, "java/util/HashMap$Node.value" OBJECT,
      "java/util/HashMap$Node.next:Ljava/util/HashMap$Node;", NULL, NULL}},
    {"java.util.concurrent.ConcurrentHashMap", SHAPE_HASH, STYLE_SIZED, SHAPE_MAP | SHAPE_SKIP_NULL | SHAPE_WIDE_SIZE, 7,
     {"baseCount:J", "table:[L" CHM "$Node;", CHM "$Node.key" OBJECT, CHM "$Node.val" OBJECT, CHM "$Node.next:L" CHM "$Node;",
      "counterCells:[L" CHM "$CounterCell;", CHM "$CounterCell.value:J"}},
    {"java.util.Properties", SHAPE_WRAP, STYLE_SIZED, 0, 1, {"map:L" CHM ";"}},
    {"java.util.Hashtable", SHAPE_HASH, STYLE_SIZED, SHAPE_MAP, 7,
     {"count:I", "table:[Ljava/util/Hashtable$Entry;", "java/util/Hashtable$Entry.key" OBJECT,
      "java/util/Hashtable$Entry.value" OBJECT, "java/util/Hashtable$Entry.next:Ljava/util/Hashtable$Entry;", NULL, NULL}},
    {"java.util.TreeMap", SHAPE_TREE, STYLE_SIZED, SHAPE_MAP, 7,
     {"size:I", "root:Ljava/util/TreeMap$Entry;", "java/util/TreeMap$Entry.left:Ljava/util/TreeMap$Entry;",
      "java/util/TreeMap$Entry.right:Ljava/util/TreeMap$Entry;", "java/util/TreeMap$Entry.parent:Ljava/util/TreeMap$Entry;",
      "java/util/TreeMap$Entry.key" OBJECT, "java/util/TreeMap$Entry.value" OBJECT}},
    {"java.util.EnumMap", SHAPE_PAIRS, STYLE_SIZED, SHAPE_MAP, 3,
     {"size:I", "keyUniverse:[Ljava/lang/Enum;", "vals" OBJECTS}},
    {"java.util.RegularEnumSet", SHAPE_BITS, STYLE_SIZED, 0, 2, {"elements:J", "universe:[Ljava/lang/Enum;"}},

    {"java.util.WeakHashMap", SHAPE_HASH, STYLE_SIZED, SHAPE_MAP | SHAPE_SKIP_NULL, 7,
     {"size:I", "table:[Ljava/util/WeakHashMap$Entry;", "java/lang/ref/Reference.referent" OBJECT,
      "java/util/WeakHashMap$Entry.value" OBJECT, "java/util/WeakHashMap$Entry.next:Ljava/util/WeakHashMap$Entry;", NULL, NULL}},
    {"java.util.AbstractMap$SimpleEntry", SHAPE_FIXED, STYLE_OBJECT, SHAPE_MAP, 2, {"key" OBJECT, "value" OBJECT}},
    {"java.util.AbstractMap$SimpleImmutableEntry", SHAPE_FIXED, STYLE_OBJECT, SHAPE_MAP, 2, {"key" OBJECT, "value" OBJECT}},
    {"java.util.KeyValueHolder", SHAPE_FIXED, STYLE_OBJECT, SHAPE_MAP | SHAPE_LATE, 2, {"key" OBJECT, "value" OBJECT}},
    {"java.util.TreeMap$Entry", SHAPE_FIXED, STYLE_OBJECT, SHAPE_MAP | SHAPE_LATE, 2, {"key" OBJECT, "value" OBJECT}},
    {"java.util.Hashtable$Entry", SHAPE_FIXED, STYLE_OBJECT, SHAPE_MAP | SHAPE_LATE, 2, {"key" OBJECT, "value" OBJECT}},
    {"java.util.concurrent.ConcurrentHashMap$MapEntry", SHAPE_FIXED, STYLE_OBJECT, SHAPE_MAP | SHAPE_LATE, 2, {"key" OBJECT, "val" OBJECT}},
    {"java.util.HashMap$Node", SHAPE_FIXED, STYLE_OBJECT, SHAPE_MAP, 2, {"key" OBJECT, "value" OBJECT}},

    {"java.util.Collections$CopiesList", SHAPE_COPIES, STYLE_SIZED, 0, 2, {"n:I", "element" OBJECT}},
    {"java.util.ArrayList$SubList", SHAPE_WINDOW, STYLE_SIZED, 0, 4,
     {"size:I", "root:Ljava/util/ArrayList;|", "this$0:Ljava/util/ArrayList;|", "offset:I"}},
    {"java.util.AbstractList$SubList", SHAPE_WINDOW, STYLE_SIZED, SHAPE_LATE, 4,
     {"size:I", "root:Ljava/util/AbstractList;", NULL, "offset:I"}},
    {"java.util.SubList", SHAPE_WINDOW, STYLE_SIZED, SHAPE_LATE, 4, {"size:I", "l:Ljava/util/AbstractList;", NULL, "offset:I"}},
    {"java.util.ImmutableCollections$SubList", SHAPE_WINDOW, STYLE_SIZED, SHAPE_LATE, 4,
     {"size:I", "root:Ljava/util/ImmutableCollections$AbstractImmutableList;", NULL, "offset:I"}},
    {COWAL "$COWSubList", SHAPE_WINDOW, STYLE_SIZED, SHAPE_LATE, 4,
     {"size:I", "l:Ljava/util/concurrent/CopyOnWriteArrayList;|", "this$0:Ljava/util/concurrent/CopyOnWriteArrayList;|", "offset:I"}},
    {"java.util.BitSet", SHAPE_BIT_SET, STYLE_SIZED, 0, 2, {"words:[J", "wordsInUse:I"}},

    {"java.util.concurrent.ConcurrentSkipListSet", SHAPE_WRAP, STYLE_SIZED, SHAPE_KEYS, 1,
     {"m:Ljava/util/concurrent/ConcurrentNavigableMap;"}},
    {"java.util.HashSet", SHAPE_WRAP, STYLE_SIZED, SHAPE_KEYS, 1, {"map:Ljava/util/HashMap;"}},
    {"java.util.TreeSet", SHAPE_WRAP, STYLE_SIZED, SHAPE_KEYS, 1, {"m:Ljava/util/NavigableMap;"}},
    {"java.util.HashMap$KeySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_KEYS, 1, {"this$0:Ljava/util/HashMap;"}},
    {"java.util.concurrent.ConcurrentHashMap$KeySetView", SHAPE_WRAP, STYLE_SIZED, SHAPE_KEYS, 1, {"map:L" CHM ";"}},
    {"java.util.concurrent.CopyOnWriteArraySet", SHAPE_WRAP, STYLE_SIZED, 0, 1,
     {"al:Ljava/util/concurrent/CopyOnWriteArrayList;"}},
    {"java.util.Collections$SetFromMap", SHAPE_WRAP, STYLE_SIZED, SHAPE_KEYS, 1, {"m:Ljava/util/Map;"}},
    {"java.util.Collections$UnmodifiableCollection", SHAPE_WRAP, STYLE_SIZED, 0, 1, {"c:Ljava/util/Collection;"}},
    {"java.util.Collections$UnmodifiableMap", SHAPE_WRAP, STYLE_SIZED, 0, 1, {"m:Ljava/util/Map;"}},
    {"java.util.Collections$SynchronizedCollection", SHAPE_WRAP, STYLE_SIZED, 0, 1, {"c:Ljava/util/Collection;"}},
    {"java.util.Collections$SynchronizedMap", SHAPE_WRAP, STYLE_SIZED, 0, 1, {"m:Ljava/util/Map;"}},
    {"java.util.Collections$CheckedCollection", SHAPE_WRAP, STYLE_SIZED, 0, 1, {"c:Ljava/util/Collection;"}},
    {"java.util.Collections$CheckedMap", SHAPE_WRAP, STYLE_SIZED, 0, 1, {"m:Ljava/util/Map;"}},

    /* views of a map's keys, values and entries, which refer to the map */
    {"java.util.LinkedHashMap$LinkedKeySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_KEYS, 2, {"this$0:Ljava/util/LinkedHashMap;", "reversed:Z|"}},
    {"java.util.LinkedHashMap$LinkedValues", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 2, {"this$0:Ljava/util/LinkedHashMap;", "reversed:Z|"}},
    {"java.util.LinkedHashMap$LinkedEntrySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 2, {"this$0:Ljava/util/LinkedHashMap;", "reversed:Z|"}},
    {"java.util.HashMap$Values", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 1, {"this$0:Ljava/util/HashMap;"}},
    {"java.util.HashMap$EntrySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 1, {"this$0:Ljava/util/HashMap;"}},
    {"java.util.Hashtable$KeySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_KEYS, 1, {"this$0:Ljava/util/Hashtable;"}},
    {"java.util.Hashtable$ValueCollection", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 1, {"this$0:Ljava/util/Hashtable;"}},
    {"java.util.Hashtable$EntrySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 1, {"this$0:Ljava/util/Hashtable;"}},
    {"java.util.WeakHashMap$KeySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_KEYS, 1, {"this$0:Ljava/util/WeakHashMap;"}},
    {"java.util.WeakHashMap$Values", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 1, {"this$0:Ljava/util/WeakHashMap;"}},
    {"java.util.WeakHashMap$EntrySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 1, {"this$0:Ljava/util/WeakHashMap;"}},
    {"java.util.IdentityHashMap$KeySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_KEYS, 1, {"this$0:Ljava/util/IdentityHashMap;"}},
    {"java.util.IdentityHashMap$Values", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 1, {"this$0:Ljava/util/IdentityHashMap;"}},
    {"java.util.IdentityHashMap$EntrySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 1, {"this$0:Ljava/util/IdentityHashMap;"}},
    {"java.util.EnumMap$KeySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_KEYS, 1, {"this$0:Ljava/util/EnumMap;"}},
    {"java.util.EnumMap$Values", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 1, {"this$0:Ljava/util/EnumMap;"}},
    {"java.util.EnumMap$EntrySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 1, {"this$0:Ljava/util/EnumMap;"}},
    {"java.util.TreeMap$Values", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 1, {"this$0:Ljava/util/TreeMap;"}},
    {"java.util.TreeMap$EntrySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 1, {"this$0:Ljava/util/TreeMap;"}},
    {"java.util.TreeMap$KeySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_KEYS, 1, {"m:Ljava/util/NavigableMap;"}},
    {"java.util.concurrent.ConcurrentSkipListMap$KeySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_KEYS, 1, {"m:Ljava/util/concurrent/ConcurrentNavigableMap;"}},
    {"java.util.concurrent.ConcurrentSkipListMap$Values", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 1, {"m:Ljava/util/concurrent/ConcurrentNavigableMap;"}},
    {"java.util.concurrent.ConcurrentSkipListMap$EntrySet", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 1, {"m:Ljava/util/concurrent/ConcurrentNavigableMap;"}},
    {"java.util.concurrent.ConcurrentHashMap$ValuesView", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 1, {"map:L" CHM ";"}},
    {"java.util.concurrent.ConcurrentHashMap$EntrySetView", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 1, {"map:L" CHM ";"}},
    {"java.util.AbstractMap$1", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_KEYS, 1, {"this$0:Ljava/util/AbstractMap;"}},
    {"java.util.AbstractMap$2", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE | SHAPE_VALUES, 1, {"this$0:Ljava/util/AbstractMap;"}},
    {"java.util.ImmutableCollections$MapN$1", SHAPE_WRAP, STYLE_SIZED, SHAPE_LATE, 1, {"this$0:Ljava/util/ImmutableCollections$MapN;"}},
};

/* clang-format on */

/*
 * The results of JvmscopeContents.learn: offsets of fields. A class that is different in this JDK
 * is treated as unknown.
 */
static struct learnt {
    bool asked, known;
    int64_t offsets[9];
    char types[9];
} learnt[ARRAY_SIZE(rows)];

/*
 * Returns the offset of a row's field, which belongs to the given class unless the row names
 * another one, or a negative number if this JDK has no such field. *ret_type receives the first
 * character of its descriptor.
 */
static int64_t offset_of(JNIEnv *jni, const struct shape_row *row, jclass at_hand,
                         const char *field, char *ret_type)
{
    char class[128], name[64], type[128];
    const char *colon = strchr(field, ':'), *dot = memrchr(field, '.', (size_t)(colon - field));
    if (dot)
        snprintf(class, sizeof(class), "%.*s", (int)(dot - field), field);
    else
        snprintf(class, sizeof(class), "%s", row->class);
    dotted_undo(class);
    const char *start = dot ? dot + 1 : field;
    snprintf(name, sizeof(name), "%.*s", (int)(colon - start), start);
    int64_t offset = -ENOENT;
    for (const char *p = colon; *p && offset < 0; p += 1 + strcspn(p + 1, "|")) {
        snprintf(type, sizeof(type), "%.*s", (int)strcspn(p + 1, "|"), p + 1);
        *ret_type = type[0] == '[' ? '#' : type[0];
        offset = at_hand ? probe_class_field_offset(jni, at_hand, name, type)
                         : probe_field_offset(jni, class, name, type);
    }
    return offset;
}

/*
 * Finds the object by which the JDK's immutable collections mark empty places since JDK 12, instead
 * of null.
 */
static void learn_nothing(JNIEnv *jni, jclass contents)
{
    jclass c = vm.version >= 12 ? (*jni)->FindClass(jni, "java/util/ImmutableCollections") : NULL;
    jfieldID from = c ? (*jni)->GetStaticFieldID(jni, c, "EMPTY", "Ljava/lang/Object;") : NULL;
    jfieldID to =
        from ? (*jni)->GetStaticFieldID(jni, contents, "nothing", "Ljava/lang/Object;") : NULL;
    if (to)
        (*jni)->SetStaticObjectField(jni, contents, to, (*jni)->GetStaticObjectField(jni, c, from));
    vm_clear_exception(jni);
}

static void learn(JNIEnv *jni, size_t i, jclass at_hand)
{
    struct learnt *l = &learnt[i];
    l->known = l->asked = true;
    for (unsigned k = 0; k < rows[i].n; k++) {
        const char *field = rows[i].fields[k];
        bool needed = field && field[strlen(field) - 1] != '|';
        l->offsets[k] =
            field && l->known ? offset_of(jni, &rows[i], at_hand, field, &l->types[k]) : -1;
        l->known = l->known && (!needed || l->offsets[k] >= 0);
    }
}

EXPORT void JNICALL Java_java_lang_JvmscopeContents_learn(JNIEnv *jni, jclass class);

/*
 * The probe class calls this when it is defined, before there are probes, because requesting an
 * offset runs code of the JDK that may be traced. FindClass uses the loader of the calling class,
 * which is the boot loader.
 */
void JNICALL Java_java_lang_JvmscopeContents_learn(JNIEnv *jni, jclass class)
{
    learn_nothing(jni, class);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (!(rows[i].flags & SHAPE_LATE))
            learn(jni, i, NULL);
}

static int fill(const struct shape_row *row, const struct learnt *l, jlong out[SHAPE_MAX],
                struct shown_class *s)
{
    bool typed = row->kind == SHAPE_VALUE || row->kind == SHAPE_PARTS;
    int n = 0;
    out[n++] = row->kind;
    if (row->kind >= SHAPE_WRAP)
        out[n++] = row->flags;
    for (unsigned i = 0; i < row->n; i++) {
        uint64_t type = typed ? (uint8_t)l->types[i] : 0;
        out[n++] = typed ? (jlong)(type << 56 | (uint64_t)l->offsets[i]) : l->offsets[i];
        if (typed)
            s->types[i] = row->flags & SHAPE_TRUTH ? 'Z' : l->types[i];
    }
    if (row->kind == SHAPE_NUMBERS)
        s->types[0] = row->fields[0][strlen(row->fields[0]) - 1];
    if (row->kind == SHAPE_SUM) {
        s->types[0] = row->flags & SHAPE_REAL ? 'D' : 'J';
        out[n++] = s->types[0];
    }
    if (row->kind == SHAPE_BIT_SET)
        s->types[0] = 'I';
    return n;
}

int shape_of_class(JNIEnv *jni, jclass class, const char *name, bool itself, jlong out[SHAPE_MAX],
                   struct shown_class *s)
{
    size_t i = 0;
    while (i < ARRAY_SIZE(rows) && strcmp(rows[i].class, name) != 0)
        i++;
    /* Consecutive rows of one class are for different JDKs. */
    for (; i < ARRAY_SIZE(rows) && strcmp(rows[i].class, name) == 0; i++) {
        if (!itself && rows[i].put && !(rows[i].flags & SHAPE_BELOW))
            return 0;
        if (!learnt[i].asked)
            learn(jni, i, class);
        if (learnt[i].known)
            break;
    }
    if (i == ARRAY_SIZE(rows) || !learnt[i].known || strcmp(rows[i].class, name) != 0)
        return 0;
    const struct shape_row *row = &rows[i];
    int n = fill(row, &learnt[i], out, s);
    s->kind = row->kind;
    s->style = row->style;
    s->n = row->kind == SHAPE_VALUE || row->kind == SHAPE_PARTS ? row->n : 0;
    s->put = row->put;
    return n;
}
