"""A client of weir-lsp-server: opens a text, asks where a value is defined, prints
what it hears, one JSON a line."""

import json
import subprocess
import sys

text = open(sys.argv[1]).read()
line, character = map(int, sys.argv[2:4])
server = subprocess.Popen(["weir-lsp-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(method, params, number=None):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    body = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    server.stdin.flush()


def receive():
    length = 0
    while (header := server.stdout.readline().strip()):
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(server.stdout.read(length))


def wait_for(number):
    while (message := receive()).get("id") != number:
        print(json.dumps(message))
    print(json.dumps(message))


document = {"uri": "test:///a.mlir"}
send("initialize", {"processId": None, "capabilities": {}, "trace": "off"}, 0)
wait_for(0)
send("textDocument/didOpen", {"textDocument": document | {"languageId": "mlir", "version": 1, "text": text}})
send("textDocument/definition", {"textDocument": document, "position": {"line": line, "character": character}}, 1)
wait_for(1)
send("shutdown", None, 2)
wait_for(2)
send("exit", None)
sys.exit(server.wait())
