"""Runs integer PTX, invocation by invocation, to try what is proved of it.

A second reader that shares nothing with lib/PtxReader: regular expressions and Python's integers.
Numbers that are no integers, and what memory holds, are 0 or random. `run` returns every access of
every invocation, with the number of barriers that it passed before; None if it meets an instruction
that decides addresses and that it does not know."""

import random
import re
from collections import namedtuple

Access = namedtuple("Access", "group thread phase space root begin end writes atomic line late")
MAX_STEPS = 5000


class Unknown(Exception):
    pass


SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
# Instructions that only pass on values that the oracle gives no meaning.
OPAQUE = ("fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "mma", "shfl", "vote", "match", "redux",
          "copysign", "testp", "set", "dp4a", "dp2a", "vadd4", "activemask", "movmatrix", "ldmatrix")
NOTHING = ("membar", "fence", "nanosleep", "prefetch", "prefetchu", "pmevent", "stmatrix")


class Entry:
    def __init__(self, text, name):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
        found = re.search(r"\.entry\s+" + re.escape(name) + r"(?![\w$%])\s*(?:\((.*?)\))?([^{;]*)\{", text, re.S)
        if not found:
            raise Unknown("no entry")
        self.params = {}
        for i, param in enumerate(p for p in (found.group(1) or "").split(",") if p.strip()):
            if "[" in param:
                raise Unknown("parameter of several numbers")
            self.params[re.findall(r"[\w$%]+", param)[-1]] = (i, 64 if re.search(r"\.[busf]64", param) else 32)
        size = re.search(r"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", found.group(2))
        self.size = tuple(int(s or 1) for s in size.groups()) if size else None
        self.widths, self.shared, self.code, self.labels = {}, {}, [], {}
        top = text[:found.start()]
        for m in re.finditer(r"\.(shared|global|const)\b[^;=\[]*?([\w$%]+)\s*(?:\[|=|;)", top):
            self.shared[m.group(2)] = m.group(1)
        line = text.count("\n", 0, found.end())
        depth, at, statement, start = 1, found.end(), "", line + 1
        while depth and at < len(text):
            c = text[at]
            line += c == "\n"
            if c in "{}" and not statement.strip():
                depth += 1 if c == "{" else -1
                if depth > 1 and c == "{":
                    raise Unknown("inner block")
            elif c == ";":
                self.add(statement.strip(), start)
                statement = ""
            elif c == ":" and re.fullmatch(r"\s*[\w$%]+", statement) and text[at:at + 2] != "::":
                self.labels[statement.strip()] = len(self.code)
                statement = ""
            elif c == "\n" and statement.strip().startswith(".loc"):
                statement = ""
            else:
                if not statement.strip():
                    start = line + 1
                statement += c
            at += 1

    def add(self, text, line):
        if not text or text.startswith((".pragma", ".loc")):
            return
        if text.startswith(".reg"):
            kind, names = re.match(r"\.reg\s+\.(\w+)\s+(.*)", text, re.S).groups()
            width = 1 if kind == "pred" else int(re.search(r"\d+", kind).group())
            for name in names.split(","):
                name = name.strip()
                many = re.match(r"([\w$%]+)<(\d+)>", name)
                for each in [f"{many.group(1)}{i}" for i in range(int(many.group(2)))] if many else [name]:
                    self.widths[each] = width
        elif text.startswith((".shared", ".local")):
            self.shared[re.findall(r"[\w$%]+", text.split("[")[0])[-1]] = text.split()[0][1:]
        elif text.startswith("."):
            raise Unknown(text.split()[0])
        else:
            guard = re.match(r"@(!?)([\w$%]+)\s+(.*)", text, re.S)
            if guard:
                text = guard.group(3)
            name, _, rest = text.partition(" ") if re.search(r"\s", text) else (text, "", "")
            if "\t" in name or "\n" in name:
                name, rest = re.match(r"(\S+)\s+(.*)", text, re.S).groups()
            self.code.append((name.split("."), split(rest), guard and guard.group(1, 2), line))


def split(text):
    parts, depth, now = [], 0, ""
    for c in text:
        depth += (c in "[{") - (c in "]}")
        if c == "," and depth == 0:
            parts.append(now.strip())
            now = ""
        else:
            now += c
    return parts + [now.strip()] if now.strip() else parts


def signed(value, width):
    return value - (1 << width) if value >> (width - 1) & 1 else value


class Invocation:
    """One invocation. Addresses are numbers: parameter i begins at (i + 1) << 40, variable k at k << 24
    of its state space. Generic addresses have that in their top byte."""

    def __init__(self, entry, group, thread, grid, size, scalars, seed, out, limit):
        self.e, self.group, self.out, self.size, self.grid, self.scalars = entry, group, out, size, grid, scalars
        self.thread, self.limit = thread, limit
        self.random = random.Random(f"{seed}")
        self.bases = {name: {"shared": 1, "local": 2}.get(kind, 3) << 56 | k << 24
                      for k, (name, kind) in enumerate(sorted(entry.shared.items()))}
        self.special = {"%laneid": thread % 32, "%warpid": thread // 32, "WARP_SZ": 32}
        ids = (thread % size[0], thread // size[0] % size[1], thread // size[0] // size[1])
        for i, axis in enumerate("xyz"):
            self.special |= {f"%tid.{axis}": ids[i], f"%ctaid.{axis}": group if i == 0 else 0,
                             f"%ntid.{axis}": size[i], f"%nctaid.{axis}": grid if i == 0 else 1}
        self.r, self.phase = {}, 0

    def get(self, text, width):
        text = text.strip()
        if text in self.r:
            return self.r[text] & ((1 << width) - 1)
        if text in self.e.widths:
            raise Unknown(f"{text} is never written")
        if text in self.special:
            return self.special[text]
        if text in self.bases:
            return self.bases[text] & ((1 << width) - 1)
        if text.startswith("{"):
            parts = split(text[1:-1])
            part = width // len(parts)
            return sum((self.get(p, part) & ((1 << part) - 1)) << (part * i) for i, p in enumerate(parts))
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
            return int(text.rstrip("U"), 0) & ((1 << width) - 1)
        if re.fullmatch(r"0[fFdD][0-9a-fA-F]+", text):
            return int(text[2:], 16) & ((1 << width) - 1)
        if re.fullmatch(r"-?\d+\.\d*(e[+-]?\d+)?", text):
            return 0
        raise Unknown(f"operand {text}")

    def predicate(self, text):
        negated = text.startswith("!")
        return bool(self.get(text.lstrip("!"), 1)) != negated

    def set(self, text, value, width=64, is_signed=False):
        if text == "_":
            return
        if text.startswith("{"):
            parts = split(text[1:-1])
            part = width // len(parts)
            for i, p in enumerate(parts):
                self.set(p, value >> (part * i), part)
            return
        to = self.e.widths[text]
        value &= (1 << width) - 1
        if is_signed and to > width:
            value = signed(value, width)
        self.r[text] = value & ((1 << to) - 1)

    def address(self, text):
        base, sign, offset = re.fullmatch(r"\[\s*([^+\-\]\s]+)\s*(?:([+-])\s*([^\]]+))?\]", text).groups()
        wide = self.e.widths.get(base, 64)
        value = self.get(base, 64)
        if offset:
            value += (-1 if sign == "-" else 1) * int(offset.replace(" ", ""), 0)
        return value & ((1 << wide) - 1) if base in self.e.widths and wide == 64 else value

    def touch(self, at, bytes, writes, space, line, atomic=False, late=False):
        if space == "local" or at >> 56 == 2:
            return
        if space == "shared" or at >> 56 == 1:
            root, begin = ("shared", (at & (1 << 32) - 1) >> 24), at & (1 << 24) - 1
        elif at >> 56:
            root, begin = ("variable", at >> 24), at & (1 << 24) - 1
        else:
            root = ("param", (at + (1 << 39) >> 40) - 1)
            begin = at - ((root[1] + 1) << 40)
        self.out.append(Access(self.group, self.thread, self.phase, space, root, begin, begin + bytes, writes, atomic,
                               line, late))

    def run(self):
        at = steps = 0
        while at < len(self.e.code):
            steps += 1
            if steps > self.limit:
                raise Unknown("too many steps")
            name, operands, guard, line = self.e.code[at]
            at += 1
            if guard and self.predicate(guard[1]) == bool(guard[0]):
                continue
            if name[0] == "bra":
                at = self.e.labels[operands[0]]
            elif name[0] in ("ret", "exit", "trap"):
                return
            else:
                self.step(name, operands, line)

    def step(self, name, o, line):
        op = name[0]
        kinds = [(p[0] if p[0] in "busf" else "f", int(re.search(r"\d+", p).group()) * (2 if p.endswith("x2") else 1))
                 for p in name[1:] if re.fullmatch(r"(b|u|s|f|bf|tf)(8|16|32|64)(x2)?", p)]
        kind, width = kinds[-1] if kinds else ("p", 1)
        has = name[1:].__contains__
        count = 8 if has("v8") else 4 if has("v4") else 2 if has("v2") else 1
        noise = self.random.getrandbits(width) if self.random.random() < 0.5 else self.random.randrange(0, 8)
        if op in ("ld", "ldu"):
            if has("param"):
                i, bits = self.e.params[re.search(r"[\w$%]+", o[1]).group()]
                if "+" in o[1] or count > 1:
                    raise Unknown("part of a parameter")
                return self.set(o[0], (i + 1) << 40 if bits == 64 else self.scalars, width)
            at = self.address(o[1])
            space = next((s.split("::")[0] for s in name if s.split("::")[0] in ("global", "shared", "local", "const")), "")
            if space != "const":
                self.touch(at, count * width // 8, False, space, line, has("volatile") or has("relaxed"))
            for part in split(o[0][1:-1]) if count > 1 else [o[0]]:
                self.set(part, self.random.randrange(0, 8) & (1 << width) - 1, width, kind == "s")
            return
        if op == "st":
            space = next((s.split("::")[0] for s in name if s.split("::")[0] in ("global", "shared", "local")), "")
            return self.touch(self.address(o[0]), count * width // 8, True, space, line, has("volatile") or has("relaxed"))
        if op in ("atom", "red"):
            at = self.address(o[0 if op == "red" else 1])
            self.touch(at, count * width // 8, True, "", line, not has("cta") or at >> 56 > 0)
            return None if op == "red" else self.set(o[0], noise, width)
        if op in ("bar", "barrier"):
            if has("warp"):
                return None
            if not has("sync") or len(o) > 1 and "0x" not in o[0]:
                raise Unknown(".".join(name))
            self.phase += 1
            return None
        if op in NOTHING:
            return None
        if op in ("cp", "mbarrier"):
            raise Unknown(op)
        if op in OPAQUE or (kind == "f" and op not in ("mov", "selp", "setp", "cvt")):
            for part in o[0].split("|"):
                for each in split(part[1:-1]) if part.startswith("{") else [part]:
                    if each != "_":
                        self.r[each] = self.random.getrandbits(self.e.widths[each]) if op != "elect" else 0
            return None
        self.set_integer(op, name, o, kinds, kind, width, has, noise)
        return None

    def set_integer(self, op, name, o, kinds, kind, width, has, noise):
        number = (lambda i: signed(self.get(o[i], width), width)) if kind == "s" else (lambda i: self.get(o[i], width))
        if op in ("mov", "cvta"):
            value = self.predicate(o[1]) if width == 1 else self.get(o[1], width)
            if op == "cvta" and has("shared") and not has("to"):
                value |= 1 << 56
            return self.set(o[0], value, width)
        if op == "cvt":
            if kinds[0][0] == "f" or kinds[1][0] == "f" or has("sat"):
                return self.set(o[0], noise, kinds[0][1])
            value = self.get(o[1], kinds[1][1])
            value = signed(value, kinds[1][1]) if kinds[1][0] == "s" else value
            return self.set(o[0], value & (1 << kinds[0][1]) - 1, kinds[0][1], kinds[0][0] == "s")
        if op == "selp":
            return self.set(o[0], self.get(o[1] if self.predicate(o[3]) else o[2], width), width)
        if op == "setp":
            if kind == "f":
                result = self.random.random() < 0.5
            else:
                a, b = number(1), number(2)
                result = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "lo": a < b,
                          "ls": a <= b, "hi": a > b, "hs": a >= b}[name[1]]
            both = [result, not result]
            if len(o) > 3:
                c = self.predicate(o[3])
                both = [x and c if has("and") else x or c if has("or") else x != c for x in both]
            for target, value in zip(o[0].split("|"), both):
                self.set(target, int(value), 1)
            return None
        if width == 1:
            values = [self.predicate(p) for p in o[1:]]
            return self.set(o[0], int(not values[0] if op == "not" else values[0] and values[1] if op == "and"
                                      else values[0] or values[1] if op == "or" else values[0] != values[1]), 1)
        if op in ("mul", "mad"):
            product = number(1) * number(2)
            out = 2 * width if has("wide") else width
            if has("hi"):
                product >>= width
            if op == "mad":
                product += self.get(o[3], out)
            return self.set(o[0], product & (1 << out) - 1, out)
        if op in ("shl", "shr"):
            by = min(self.get(o[2], 32), width)
            return self.set(o[0], (number(1) << by if op == "shl" else number(1) >> min(by, width)) & (1 << width) - 1, width)
        if op == "bfe":
            begin, length = self.get(o[2], 32) & 255, self.get(o[3], 32) & 255
            value = number(1) >> begin & (1 << length) - 1
            if kind == "s" and length and number(1) >> min(begin + length - 1, width - 1) & 1:
                value |= -1 << length
            return self.set(o[0], value & (1 << width) - 1, width)
        if op == "lop3":
            table, out = self.get(o[4], 8), 0
            a, b, c = (self.get(o[i], 32) for i in (1, 2, 3))
            for bit in range(32):
                out |= (table >> ((a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1) & 1) << bit
            return self.set(o[0], out, 32)
        if op == "shf":
            both = self.get(o[2], 32) << 32 | self.get(o[1], 32)
            by = self.get(o[3], 32)
            by = min(by, 32) if has("clamp") else by & 31
            return self.set(o[0], both << by >> 32 if has("l") else both >> by, 32)
        if op == "prmt" and not set(name) & {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}:
            both, pick = self.get(o[2], 32) << 32 | self.get(o[1], 32), self.get(o[3], 32)
            out = 0
            for i in range(4):
                byte = both >> 8 * (pick >> 4 * i & 7) & 255
                out |= ((255 if byte >> 7 else 0) if pick >> 4 * i & 8 else byte) << 8 * i
            return self.set(o[0], out, 32)
        a = number(1)
        b = number(2) if len(o) > 2 else 0
        if op in ("div", "rem") and b == 0:
            return self.set(o[0], noise, width)
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if op in ("div", "rem") else 0
        table = {"add": lambda: a + b, "sub": lambda: a - b, "neg": lambda: -a, "abs": lambda: abs(a), "and": lambda: a & b,
                 "or": lambda: a | b, "xor": lambda: a ^ b, "not": lambda: ~a, "min": lambda: min(a, b),
                 "max": lambda: max(a, b), "div": lambda: quotient, "rem": lambda: a - b * quotient,
                 "popc": lambda: bin(a & (1 << width) - 1).count("1"), "clz": lambda: width - a.bit_length(),
                 "brev": lambda: int(f"{a:0{width}b}"[::-1], 2)}
        if op not in table or has("sat") or has("cc"):
            raise Unknown(".".join(name))
        return self.set(o[0], table[op]() & (1 << width) - 1, 32 if op in ("popc", "clz") else width)


def run(text, name, grid, block, scalars, seed):
    """Returns (accesses, barriers of each invocation by group)."""
    entry = Entry(text, name)
    size = entry.size or (block, 1, 1)
    count = size[0] * size[1] * size[2]
    if grid * count > 4096:
        raise Unknown("too many invocations")
    out, barriers = [], {}
    for group in range(grid):
        for thread in range(count):
            # A place holds one number, but the oracle draws one at each load: two runs of one
            # invocation may differ. Claims hold for whatever memory holds.
            each = Invocation(entry, group, thread, grid, size, scalars, (seed, group, thread), out, MAX_STEPS)
            each.run()
            barriers.setdefault(group, []).append(each.phase)
    return out, barriers


def find_objection(claims, accesses, barriers, complete=True):
    """Returns what the accesses of a run show to be false among the claims of read-ptx, or None."""
    parameters = claims["parameters"]
    by_root = {}
    for access in accesses:
        by_root.setdefault(access.root, []).append(access)
    for (kind, number), mine in by_root.items():
        if kind == "param":
            claim = parameters.get(str(number))
            if claim is None:
                continue
            if not claim["touched"]:
                return f"parameter {number} is touched in line {mine[0].line}"
            if claim["reach"]:
                for access in mine:
                    if access.begin < claim["reach"][0] or access.end > claim["reach"][1]:
                        return f"line {access.line} touches [{access.begin}, {access.end}) of {number}, not in {claim['reach']}"
            is_free = claim["free_of_races"] == "yes"
        elif kind == "variable":
            continue
        else:
            is_free = claims["shared_free_of_races"] == "yes"
        if is_free and (race := find_race(mine, kind == "shared")):
            return "a race between " + " and ".join(f"line {a.line} of {a.group}.{a.thread}" for a in race)
    if complete:
        for number, claim in parameters.items():
            written = {byte for access in by_root.get(("param", int(number)), []) if access.writes
                       for byte in range(access.begin, access.end)}
            for begin, end in claim.get("written", []):
                if any(byte not in written for byte in range(begin, end)):
                    return f"not all of [{begin}, {end}) of parameter {number} is written"
    if claims["uniform_barriers"] == "yes" and any(len(set(each)) > 1 for each in barriers.values()):
        return "invocations pass different numbers of barriers"
    return None


def find_race(accesses, is_shared):
    bytes_of = {}
    for access in accesses:
        for byte in range(access.begin, access.end):
            bytes_of.setdefault((access.group, byte) if is_shared else byte, []).append(access)
    for all_of in bytes_of.values():
        writers = [a for a in all_of if a.writes]
        for w in writers[:8]:
            for a in all_of:
                same = a.group == w.group
                if (a.group, a.thread) != (w.group, w.thread) and not (a.atomic and w.atomic) and \
                        not (same and a.phase != w.phase):
                    return w, a
    return None
