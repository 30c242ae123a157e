// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import org.jacoco.core.analysis.Analyzer;
import org.jacoco.core.analysis.CoverageBuilder;
import org.jacoco.core.analysis.IClassCoverage;
import org.jacoco.core.analysis.ICounter;
import org.jacoco.core.analysis.ILine;
import org.jacoco.core.analysis.IMethodCoverage;
import org.jacoco.core.tools.ExecFileLoader;

/** JaCoCo's view: CLASS METHOD LINE HIT BRANCHES-TAKEN BRANCHES of the classes in argument 2, by the data of argument 1. */
public class JacocoLines {
    public static void main(String[] args) throws Exception {
        ExecFileLoader data = new ExecFileLoader();
        data.load(new File(args[0]));
        CoverageBuilder all = new CoverageBuilder();
        new Analyzer(data.getExecutionDataStore(), all).analyzeAll(new File(args[1]));
        for (IClassCoverage c : all.getClasses()) {
            for (IMethodCoverage m : c.getMethods()) {
                for (int i = m.getFirstLine(); i <= m.getLastLine(); i++) {
                    ILine line = m.getLine(i);
                    if (line.getStatus() != ICounter.EMPTY) {
                        System.out.println(c.getName().replace('/', '.') + " " + m.getName() + m.getDesc() + " " + i + " "
                                + (line.getInstructionCounter().getCoveredCount() > 0 ? 1 : 0) + " "
                                + line.getBranchCounter().getCoveredCount() + " " + line.getBranchCounter().getTotalCount());
                    }
                }
            }
        }
    }
}
