// SPDX-License-Identifier: Apache-2.0
/**
 * Implements interfaces by a class, by lambdas and by method references, and calls them until its
 * input ends.
 */
public class Implemented {
    interface Job {
        int work(int n);
    }

    interface SmallJob extends Job {
    }

    /** Implemented by lambdas alone. */
    interface Task {
        int run(int n);
    }

    /** Implemented by a method reference alone. */
    interface Step {
        int step(int n);
    }

    /** Implemented by a class alone. */
    interface Plain {
        int plain(int n);
    }

    static class Worker implements Job, Plain {
        public int work(int n) {
            return n + 1;
        }

        public int plain(int n) {
            return n;
        }
    }

    static class Helper {
        static int help(int n) {
            return n + 2;
        }
    }

    public static void main(String[] args) throws Exception {
        Worker worker = new Worker();
        Job[] jobs = {worker, Helper::help, n -> n + 3, (SmallJob) n -> n + 4};
        Task task = n -> n + 5;
        Step step = Helper::help;
        java.util.function.Predicate<java.util.Optional<?>> present = java.util.Optional::isPresent;
        System.out.println("ready");
        do {
            for (Job job : jobs)
                job.work(1);
            task.run(1);
            step.step(1);
            present.test(java.util.Optional.empty());
            worker.plain(1);
            Thread.sleep(1);
        } while (args.length > 0 && System.in.available() == 0);
        System.out.println("done");
    }
}
