"""ClickHouse's engine (chdb) behind its HTTP interface, as far as tally uses it.

    clickhouse.py PORT FOLDER

One in four inserts is executed and not answered: the connection ends, as when a server dies in between.
"""
import http.server
import random
import sys
import urllib.parse

from chdb import session

port, folder = int(sys.argv[1]), sys.argv[2]
engine = session.Session(folder)
engine.query("CREATE DATABASE IF NOT EXISTS sums")
engine.query("USE sums")
draw = random.Random(1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        options = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        options.pop("database", None)
        statement = options.pop("query", None)
        if statement is not None:
            settings = ", ".join(f"{name} = '{value}'" for name, value in options.items())
            head, form = statement.rsplit(" FORMAT ", 1)
            body = f"{head} {'SETTINGS ' + settings if settings else ''} FORMAT {form}\n{body}"
        try:
            status, answer = 200, str(engine.query(body, "TabSeparated"))
        except Exception as error:
            status, answer = 500, f"{error}\n"
        if statement is not None and options and draw.random() < 0.25:
            self.close_connection = True
            self.connection.shutdown(2)
            return
        data = answer.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
