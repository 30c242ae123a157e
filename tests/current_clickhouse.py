#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A current ClickHouse, which npm's package chdb has as a library, behind the HTTP interface that a
store uses. It has no cluster.

Usage: current_clickhouse.py LIBRARY FOLDER: keeps its data in the folder and prints its port.
"""
import ctypes
import http.server
import sys
import tempfile
import threading
import urllib.parse


class Library:
    def __init__(self, path, folder):
        lib = self.lib = ctypes.CDLL(path)
        pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        for name, result, arguments in (
            ("connect", pointer, [ctypes.c_int, ctypes.POINTER(text)]),
            ("query_n", pointer, [pointer, text, size, text, size]),
            ("result_buffer", pointer, [pointer]),
            ("result_length", size, [pointer]),
            ("result_error", text, [pointer]),
            ("destroy_query_result", None, [pointer]),
        ):
            function = getattr(lib, f"chdb_{name}")
            function.restype, function.argtypes = result, arguments
        words = [b"clickhouse", b"--path=" + folder.encode()]
        self.connection = pointer.from_address(
            lib.chdb_connect(len(words), (text * len(words))(*words))
        )
        self.lock = threading.Lock()

    def run(self, sql):
        """Returns the answer, and the error or None."""
        result = self.lib.chdb_query_n(
            self.connection, sql, len(sql), b"TabSeparated", len("TabSeparated")
        )
        error = self.lib.chdb_result_error(result)
        length = self.lib.chdb_result_length(result)
        answer = ctypes.string_at(self.lib.chdb_result_buffer(result), length) if length else b""
        self.lib.chdb_destroy_query_result(result)
        return answer, error

    def ask(self, database, sql, data):
        """data: the rows for an INSERT, or None. They come from a file, because white space at the
        end of a statement is removed.
        """
        with self.lock, tempfile.NamedTemporaryFile() as file:
            if data is not None:
                file.write(data)
                file.flush()
                sql = sql.replace(" FORMAT ", f" FROM INFILE '{file.name}' FORMAT ")
            _, error = self.run(f"USE `{database}`".encode())
            return (b"", error) if error else self.run(sql.encode("utf-8", "surrogateescape"))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        arguments = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        sql, data = (
            (arguments["query"], body)
            if "query" in arguments
            else (body.decode("utf-8", "surrogateescape"), None)
        )
        answer, error = library.ask(arguments.get("database", "default"), sql, data)
        answer = error + b"\n" if error else answer
        self.send_response(500 if error else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    library = Library(*sys.argv[1:])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
