// SPDX-License-Identifier: Apache-2.0
import java.util.Random;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Lucene: an index in memory, searched, written to and searched again. Arguments: DOCUMENTS. */
public class Searches {
    static final ByteBuffersDirectory DIRECTORY = new ByteBuffersDirectory();
    static IndexWriter writer;
    static IndexSearcher searcher;

    public static void main(String[] args) throws Exception {
        int documents = Integer.parseInt(args[0]);
        Random random = new Random(7);
        writer = new IndexWriter(DIRECTORY, new IndexWriterConfig(new StandardAnalyzer()));
        long hits = 0;
        for (int i = 0; i < documents; i++) {
            StringBuilder text = new StringBuilder();
            for (int w = 0; w < 40; w++)
                text.append("word")
                        .append((int) (Math.abs(random.nextGaussian()) * 3000))
                        .append(' ');
            Document d = new Document();
            d.add(new StringField("id", "doc-" + i, Field.Store.YES));
            d.add(new TextField("text", text.toString(), Field.Store.YES));
            writer.addDocument(d);
            if (i % (documents / 4) == documents / 4 - 1) {
                searcher = new IndexSearcher(DirectoryReader.open(writer));
                for (int q = 0; q < 200; q++) {
                    BooleanQuery query =
                            new BooleanQuery.Builder()
                                    .add(new TermQuery(new Term("text", "word" + q)),
                                         BooleanClause.Occur.MUST)
                                    .add(new TermQuery(new Term("text", "word" + q * 2)),
                                         BooleanClause.Occur.SHOULD)
                                    .build();
                    hits += searcher.search(query, 20).scoreDocs.length;
                }
            }
        }
        System.out.println("hits " + hits);
    }
}
