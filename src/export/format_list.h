/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats in the order in which help lists them. export_format_NAME is defined in the format's
 * file. Included with a definition of FORMAT().
 */
FORMAT(html)
FORMAT(collapsed)
FORMAT(pprof)
FORMAT(otlp)
FORMAT(hprof_text)
FORMAT(hprof)
FORMAT(jfr)
FORMAT(trcxml)
FORMAT(perfetto)
FORMAT(chrome)
