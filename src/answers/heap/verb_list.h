/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of `jvmscope heap` that have an answer, in the order in which help lists them.
 * heap_verb_NAME is defined in the verb's file. Included with a definition of VERB().
 */
VERB(summary)
VERB(histogram)
VERB(dominators)
VERB(retained)
VERB(paths)
VERB(leaks)
VERB(objects)
VERB(query)
VERB(strings)
VERB(collections)
VERB(arrays)
VERB(references)
VERB(classes)
VERB(components)
VERB(unreachable)
VERB(threads)
