"""Small templates whose output jinja2 gives; see make.py. All are rendered with VARIABLES."""

VARIABLES = {
    "n": 7, "zero": 0, "neg": -3, "f": 2.5, "t": True, "no": False, "nothing": None, "s": "Hello World", "e": "", "u": "äöü ß 東京 🙂",
    "l": [3, 1, 2], "w": ["b", "a", "C", "B"], "d": {"b": 2, "a": 1, "c": [1, {"x": None}]}, "empty": [], "ed": {},
    "users": [{"name": "Bo", "age": 30, "tag": {"k": "x"}}, {"name": "al", "age": 25, "tag": {"k": "y"}},
              {"name": "Cy", "age": 30, "tag": {"k": "x"}}],
    "nested": [[1, 2], [3, [4, 5]], []], "html": "<a href=\"x\">'&'</a>", "lines": "one\ntwo\n\nthree", "quote": "it's \"q\"\\\t\n\u0001\u00a0é",
    "big": 9223372036854775807, "small": 1e-7, "huge": 1e22, "mixed": [1, "a", None, 2.0, True, [1], {"k": 1}],
    "items": {"items": 1, "keys": 2, "get": 3, "x y": 4, "__class__": 5, "_private": 6}, "tree": [
        {"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}, {"v": 5, "kids": []}],
}

EXPRESSIONS = r"""
1
-1
+1
1.5
1.0
100
1e3
1E+3
1.5e-7
1e16
1e15
123456789012345680.0
0.1 + 0.2
1/3
2/1
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
-7.5 % 2
7.5 // 2
-7.5 // 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
0 ** 0
2.0 ** 3
(-8) ** 3
1_000
0x1F
0o17
0b101
0xff + 1
10 - 3 - 2
2 * 3 + 4
2 + 3 * 4
(2 + 3) * 4
10 / 4 * 2
1 / 0
1 // 0
1 % 0
1.0 / 0
1.0 % 0
0 ** -1
9223372036854775807
1 + 1.5
true + 1
true + true
-true
1 == 1.0
1 == true
"1" == 1
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2
1 != 2
"a" < "b"
"a" < 1
none < 1
none == none
none == false
[1, 2] == [1, 2]
[1, 2] < [1, 3]
(1, 2) == [1, 2]
{"a": 1} == {"a": 1.0}
{"a": 1, "b": 2} == {"b": 2, "a": 1}
[] < [1]
9007199254740993 == 9007199254740992.0
9007199254740993 > 9007199254740992.0
1 in l
9 in l
9 not in l
"b" in d
"z" not in d
"ell" in s
"" in s
1 in s
none in s
not true
not not 1
not e
not 1 == 2
true and "x"
false and "x"
"" or "y"
none or 0 or "z"
1 and 2 or 3
t or undefined.x
no and undefined.x
"a" if true else "b"
"a" if false else "b"
"a" if false
("a" if false) is undefined
1 if false else 2 if false else 3
"a" ~ 1 ~ none ~ true ~ 2.0
"a" ~ missing ~ "b"
"a" "b" 'c'
"x" * 3
3 * "x"
"x" * -1
[1] * 2
(1,) * 2
[1] + [2]
(1,) + (2,)
"a" + "b"
"a" + 1
[1] + (2,)
1 + "a"
"a" - "b"
none + 1
-"a"
-none
- -3
n
neg
f
t
nothing
s
u
big
small
huge
missing
missing.x
missing.__class__
missing.__mro__
missing._undefined_hint
missing["__class__"]
missing[0]
missing()
missing + 1
1 + missing
missing == missing
missing == none
missing < 1
-missing
missing|length
missing in l
missing is iterable
l
w
d
()
(1,)
(1, 2)
[]
{}
{"a": {"b": [1, "x"]}}
{1: 2, none: 3, true: 4, 2.5: 5, (1, 2): 6}
{[1]: 2}
{"a": 1, "a": 2}
[1, 2.0, "a", none, true, [missing], {"k": (1,)}]
[quote]
quote
[html, u]
["\x7f\xad\u200b\ue000"]
["it's"]
['"']
['"\'']
(0 - big) - 1
big // -1
l[0]
l[-1]
l[3]
l[3] is undefined
l["x"]
l[1.0]
l[true]
l[1:]
l[:2]
l[::-1]
l[-2:]
l[5:]
l[2:0:-1]
l[::2]
l[::0]
l["a":]
l[none:none:none]
l[-100:100]
l[:-1]
l[1:2][0]
s[0]
s[-1]
s[100]
s[1:4]
s[::-1]
s[::3]
s[-3:]
s[:-3]
s[8:2:-2]
u[0]
u[4]
u[-1]
u[6:8]
u[::-1]
u[1::2]
u[-3:-1]
u|length
(1, 2, 3)[1]
(1, 2, 3)[::-1]
d.a
d["a"]
d.zz
d.zz.y
d["zz"] is defined
d.c[1].x
d.c.1.x
d[0]
d[["a"]]
d[1:2]
none[0]
none.x
1 .x
5[0]
items.items is callable
items["items"]
items["keys"]
items.get("get")
items["x y"]
items["get"]
d["get"]("a")
items.__class__
items["__class__"]
items._private
items["_private"]
s.__class__
s["__class__"]
s.__class__.__mro__
l.__len__
d.__init__.__globals__
""._x
s._x is undefined
namespace(a=1)._x
range.__call__
self
self.x
self.__class__
lipsum.__globals__
cycler.__init__
l.append(4)
l.append
l.append is defined
l.pop()
l.sort()
d.update({"x": 1})
d.pop("a")
d.clear()
d.setdefault("x", 1)
l.index(2)
l.index(9)
l.count(1)
l.count("x")
l.copy()
d.keys()
d.values()
d.items()
d.keys()|list
d.items()|list
d.items()|length
d.keys()[0]
d.get("a")
d.get("zz")
d.get("zz", 5)
d.get()
d.get("a", 1, 2)
"a" in d.keys()
1 in d.values()
("a", 1) in d.items()
d.copy()
d.keys() is sequence
d is sequence
range(3)
range(3)|list
range(1, 4)|list
range(10, 0, -3)|list
range(2, 8, 3)
range(5)[1]
range(5)[-1]
range(5)[1:3]
range(5)[::-1]|list
range(0)
range(3)|length
range(1, 1)|list
range(1, 2, 0)
range(100001)
range(1.5)
range()
range("a")
3 in range(5)
range(3) == range(0, 3, 1)
dict(a=1, b="x")
dict([["a", 1], ["b", 2]])
dict({"a": 1}, b=2)
dict([1])
dict(1)
namespace(a=1, b="x")
namespace(a=1).a
namespace(a=1).b
namespace(a=1)["a"]
namespace({"a": 1}, b=2)
"a" in namespace(a=1)
(1).real
s.upper()
s.lower()
s.title()
s.capitalize()
s.swapcase()
u.upper()
u.capitalize()
"ǆ ﬁ ŉ ß".title()
"ǆ ﬁ ŉ ß".upper()
"ΑΣ ΣΑΣ Σ".lower()
"ΑΣ ΣΑΣ Σ"|lower
"İI".lower()
"ÀÉ".casefold()
"Straße".casefold()
"they're bill's UK-based".title()
"  x y ".strip()
"  x y ".lstrip()
"  x y ".rstrip()
"xxaxx".strip("x")
"xyaxy".strip("yx")
"\n\t x\u00a0\u3000".strip()
"äaä".strip("ä")
"abc".lstrip("ab")
"abc".rstrip("bc")
"abc".strip("")
"abc".strip(none)
"abc".strip(1)
"a,b,,c".split(",")
"a,b,,c".split(",", 1)
"a,b,,c".split(",", maxsplit=2)
"a,b,,c".split(sep=",")
"a,b,,c".rsplit(",", 1)
" a  b c ".split()
" a  b c ".split(none, 1)
" a  b c ".rsplit(none, 1)
" a  b c ".rsplit()
"".split()
"".split(",")
"abc".split("")
"a".split(1)
"aXXbXXc".split("XX")
"aXXbXXc".rsplit("XX", 1)
"äöä".split("ö")
lines.splitlines()
lines.splitlines(true)
"a\r\nb\rc\x0bd\x85e\u2028f".splitlines()
"".splitlines()
"a\n".splitlines()
"abab".replace("a", "x")
"abab".replace("a", "x", 1)
"abab".replace("", "-")
"abab".replace("", "-", 2)
"äö".replace("", "-")
"abab".replace("ab", "")
"abab".replace("a")
"abab".replace("a", 1)
s.startswith("Hell")
s.startswith(("x", "H"))
s.startswith("ello", 1)
s.startswith("")
s.startswith(1)
s.endswith("World")
s.endswith(("x", "d"))
s.endswith("Wor", 0, 9)
s.find("o")
s.find("o", 5)
s.find("zz")
s.find("o", -4)
s.find("")
s.find("", 100)
s.rfind("o")
s.rfind("l", 0, 5)
s.rfind("zz")
s.index("W")
s.index("zz")
s.rindex("o")
u.find("東")
u.rfind("ü")
s.count("l")
s.count("")
s.count("l", 4)
"aaaa".count("aa")
"-".join(["a", "b"])
"-".join([1])
"-".join("abc")
"".join([])
"abc".center(9) ~ "|"
"abc".center(8, "*")
"abcd".center(7, "*")
"abc".ljust(5) ~ "|"
"abc".rjust(5)
"5".zfill(3)
"-5".zfill(4)
"+5".zfill(4)
"".zfill(2)
"ab".partition("b")
"ab".partition("x")
"a.b.c".rpartition(".")
"a.b.c".partition(".")
"ab".rpartition("x")
"prefix".removeprefix("pre")
"prefix".removeprefix("x")
"prefix".removesuffix("fix")
"prefix".removesuffix("")
"12".isdigit()
"1²".isdigit()
"1²".isdecimal()
"½".isnumeric()
"½".isdigit()
"".isdigit()
"١٢".isdigit()
"ab".isalpha()
"äß".isalpha()
"a1".isalpha()
"a1".isalnum()
" \t".isspace()
"".isspace()
"ab".islower()
"aB".islower()
"a1".islower()
"1".islower()
"AB".isupper()
"Ab Cd".istitle()
"Ab cd".istitle()
"ab_1".isidentifier()
"1ab".isidentifier()
"abc".isascii()
"é".isascii()
"a\n".isprintable()
"a".isprintable()
"abc".nope
"abc".nope()
"{} {}".format(1, "a")
"{0} {1} {0}".format(1, "a")
"{a} {b}".format(a=1, b=none)
"{} {0}".format(1)
"{}".format()
"{x}".format()
"{{}} {}".format(1)
"{:>5}|{:<5}|{:^5}|".format("a", "b", "c")
"{:*^7}".format("mid")
"{:5d}|{:05d}|{:+d}".format(3, 4, 5)
"{:,}".format(1234567)
"{:_}".format(1234567)
"{:x} {:X} {:o} {:b} {:#x}".format(255, 255, 8, 5, 255)
"{:.2f}".format(3.14159)
"{:10.3f}|".format(3.14159)
"{:e}".format(12345.678)
"{:g}".format(0.0001)
"{:g}".format(1e20)
"{:%}".format(0.25)
"{:.1%}".format(0.256)
"{:,.2f}".format(1234567.891)
"{:5}".format(true)
"{}".format(true)
"{:s}".format("x")
"{:d}".format("x")
"{:.2}".format("abc")
"{:5}|".format(1.5)
"{!r} {!s}".format("a", "b")
"{0[a]} {0[c][0]}".format(d)
"{0.a}".format(d)
"{0.__class__}".format(d)
"{:{}}|".format("x", 4)
"{:{w}.{p}f}".format(3.14159, w=8, p=2)
"{".format()
"}".format()
"{:q}".format(1)
"{} {}".format(1.0, 1e100)
"{}".format([1, "a"])
"{}".format(missing)
"%s %s" % ("a", 1)
"%s" % "x"
"%s" % none
"%s" % [1, "a"]
"%s" % (none,)
"%d" % 3.7
"%d" % "3"
"%i|%5d|%-5d|%05d|%+d" % (1, 2, 3, 4, 5)
"%.2f %e %g %G" % (3.14159, 12345.678, 0.0001, 1e20)
"%5.1f|%-8.2f|" % (3.14159, 2.5)
"%x %X %o %#x %#o" % (255, 255, 8, 255, 8)
"%c%c" % ("a", 98)
"%r" % "it's"
"%%"
"%%" % ()
"100%" % ()
"%(a)s-%(b)d" % {"a": "x", "b": 2}
"%(z)s" % {"a": 1}
"%s %s" % "x"
"%s" % ("a", "b")
"a" % 1
"a" % [1]
"a" % {}
"%q" % 1
"%.2s" % "abc"
"%5s|%-5s|" % ("a", "b")
"%*d" % (5, 3)
"%s" % missing
"%d" % missing
"%s" % true
"%d" % true
s|upper
s|lower
"hello wOrld foo-bar (baz) it's"|title
"hELLO"|capitalize
5|upper
none|upper
missing|upper
"  x "|trim
"xxaxx"|trim("x")
5|trim
l|first
l|last
empty|first
empty|first is undefined
empty|last
s|first
s|last
d|first
d|last
missing|first
5|first
(1, 2)|first
range(3)|last
l|length
l|count
s|length
d|length
5|length
none|length
l|map("string")|length
l|list
s|list
d|list
none|list
missing|list
l|join
l|join(", ")
l|join(d="-")
users|join(", ", attribute="name")
users|join(attribute="age")
none|join
s|join("-")
l|join(1)
["a", none, 1.5, missing]|join("|")
l|sort
l|sort(reverse=true)
w|sort
w|sort(case_sensitive=true)
w|sort(true)
users|sort(attribute="age")|map(attribute="name")|join(",")
users|sort(attribute="age,name")|map(attribute="name")|join(",")
users|sort(attribute="tag.k", reverse=true)|map(attribute="name")|join(",")
users|sort(attribute="name")|map(attribute="name")|join(",")
[1, "a"]|sort
[none, 1]|sort
d|sort
s|sort|join
l|reverse|list
s|reverse
u|reverse
d|reverse|list
5|reverse
l|map("string")|reverse
["b", "a", "b", "B"]|unique|list
["b", "a", "b", "B"]|unique(true)|list
users|unique(attribute="age")|map(attribute="name")|list
[[1], [1]]|unique|list
[1, 1.0, true, 2]|unique|list
l|min
l|max
w|min
w|max
w|max(case_sensitive=true)
empty|min
empty|max is undefined
users|min(attribute="age")
users|map(attribute="age")|max
l|sum
[1.5, 2]|sum
users|sum(attribute="age")
users|sum("age", 100)
l|sum(start=10)
["a"]|sum
[[1], [2]]|sum(start=[])
["a", "b"]|sum(start="")
l|map("string")|list
users|map(attribute="name")|list
users|map(attribute="tag.k")|list
users|map(attribute="zz")|list
users|map(attribute="zz", default="-")|list
users|map(attribute="zz.y", default="-")|list
[[1, 2], [3, 4]]|map(attribute=1)|list
[[1, 2], [3, 4]]|map(attribute="0")|list
w|map("upper")|join
w|map("replace", "a", "x")|join
l|map("nofilter")|list
[]|map("nofilter")|list
l|map|list
l|map(attribute="x", foo=1)|list
missing|map("upper")|list
["1", "2"]|map("int")|sum
[0, 1, "", "a", none]|select|list
[0, 1, "", "a", none]|reject|list
l|select("odd")|list
l|reject("odd")|list
l|select("gt", 1)|list
l|select("in", [1, 2])|list
l|select(">", 1)|list
mixed|select("string")|list
mixed|select("number")|list
mixed|select("none")|list
mixed|reject("mapping")|list
l|select("notest")|list
l|select("divisibleby", 3)|list
users|selectattr("age", "equalto", 30)|map(attribute="name")|list
users|selectattr("age", "lt", 30)|map(attribute="name")|list
users|selectattr("zz")|list
users|selectattr("zz", "defined")|list
users|selectattr("zz", "undefined")|list|length
users|rejectattr("age", "eq", 30)|map(attribute="name")|list
users|rejectattr("zz")|list|length
users|selectattr("tag.k", "==", "x")|list|length
users|selectattr|list
users|selectattr("age", "in", [25])|first
users|groupby("age")
users|groupby("age")|map(attribute="grouper")|list
users|groupby("tag.k")|map("last")|map("length")|list
users|groupby("zz", default="none")|list|length
[{"c": "b"}, {"c": "B"}, {"c": "a"}]|groupby("c")
[{"c": "b"}, {"c": "B"}, {"c": "a"}]|groupby("c", case_sensitive=true)
(users|groupby("age"))[0].grouper
(users|groupby("age"))[0].list|length
d|dictsort
{"B": 1, "a": 2}|dictsort
{"B": 1, "a": 2}|dictsort(true)
{"x": 2, "y": 1}|dictsort(by="value")
{"x": 2, "y": 1}|dictsort(false, "key", true)
d|dictsort(by="zz")
{"x": "b", "y": 1}|dictsort(by="value")
l|dictsort
d|items|list
missing|items|list
l|items|list
none|items|list
range(7)|batch(3)|list
range(7)|batch(3, "x")|list
range(7)|slice(3)|list
range(7)|slice(3, "x")|list
range(2)|slice(3, "x")|list
range(2)|batch(0)|list
range(2)|slice(0)|list
missing|default("x")
e|default("x")
e|default("x", true)
none|default("x")
none|d("x", true)
0|default(1, boolean=true)
missing|default
d.zz|default("y")
d.zz.y|default("z")
missing|d(default_value=3)
"42"|int
"42.7"|int
" 42 "|int
"4_2"|int
"x"|int
"x"|int(-1)
"x"|int(default=5)
"ff"|int(base=16)
"0xff"|int(0, 16)
"0b11"|int(base=0)
3.9|int
-3.9|int
none|int
true|int
l|int
"1e3"|int
"inf"|int
""|int
"٣"|int
"99999999999999999999"|float
"3.5"|float
"x"|float
"x"|float(1.5)
" 1_0.5 "|float
"inf"|float
"-nan"|float is float
"1e400"|float
"1e-400"|float
".5"|float
"5."|float
"."|float
"1e"|float
3|float
none|float
missing|int
missing|float
2.5|round
3.5|round
-2.5|round
2.675|round(2)
1234.5678|round(2)
1234.5678|round(-2)
1250|round(-2)
1350|round(-2)
-1250|round(-2)
42|round
42|round(2)
2.1|round(method="ceil")
2.9|round(0, "floor")
-2.1|round(0, "floor")
2.123|round(2, "ceil")
2.129|round(2, method="floor")
25|round(-1, "ceil")
1e300|round(2)
0.5|round
1.5|round
5e-324|round(3)
2.5|round(method="x")
"a"|round
5|abs
-5|abs
-2.5|abs
"a"|abs
true|abs
s|replace("o", "0")
s|replace("o", "0", 1)
s|replace("o", 1)
123|replace(2, "x")
s|replace("o", "0", count=1)
s|replace("o")
5|string
none|string
[1, "a"]|string
html|e
html|escape
html|safe
html|safe|e
html|forceescape
html|safe|forceescape
(html|safe) + "<"
"<" + ("<b>"|safe)
("<b>"|safe) ~ "<"
("<%s>"|safe) % "<x>"
("<%s>"|safe).format("<x>")
("<{}>"|safe).format("<x>")
["<b>"|safe, "<"]
("<b>"|safe)|upper
("<b>"|safe)|upper is escaped
("a<"|safe).replace("a", "<")
("<"|safe).join(["<", "x"])
["<", "<b>"|safe]|join("&")
("<b>"|safe)[0]
("<b>"|safe) is string
("<b>"|safe) * 2
("<b>"|safe).split("b")
("<b>"|safe)|trim
("<b>"|safe)|replace("<", ">")
("<b>"|safe)|tojson
("<b>"|safe)|length
5|e
none|safe
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, first=true, blank=true)
lines|indent("> ")
lines|indent(width=1)
"a\n"|indent
"\na"|indent
""|indent
5|indent
missing|indent
s|center(21)
"x"|center(4) ~ "|"
s|wordcount
"it's a-b  c_d é"|wordcount
""|wordcount
"foo bar baz qux"|truncate(9)
"foo bar baz qux"|truncate(9, true)
"foo bar baz qux"|truncate(11)
"foo bar baz qux"|truncate(11, false, "...", 0)
"foo bar baz qux"|truncate(9, true, "")
"foobarbazquxxx"|truncate(5, leeway=0)
"foo"|truncate(2)
"foo bar"|truncate(2, end="", leeway=0)
5|truncate
[1]|truncate
missing|truncate(5)
[1, 2, 3]|truncate(1, true, "", 0)
"%s-%s"|format(1, 2)
"%(a)s"|format(a=1)
"%s"|format(1, a=2)
"%s"|format
"a b/ü&?"|urlencode
{"a": "b c", "d": 1}|urlencode
[["a", 1], ["b", "/"]]|urlencode
5|urlencode
{"a": "x<", "b": none, "c": 1}|xmlattr
{"a": 1}|xmlattr(false)
{"a b": 1}|xmlattr
1000|filesizeformat
1|filesizeformat
0|filesizeformat
999|filesizeformat
1536|filesizeformat(true)
123456789|filesizeformat
"2000000"|filesizeformat
1e30|filesizeformat
d|attr("items") is callable
d|attr("a")
s|attr("upper") is callable
s|attr("nope") is undefined
s|attr("__class__")
d|tojson
d|tojson(indent=2)
d|tojson(2)
d|tojson(true)
d|tojson(indent="\t")
d|tojson(indent=0)
d|tojson(sort_keys=true)
d|tojson(separators=(",", ":"))
d|tojson(separators=[" ; ", " = "])
d|tojson(indent=1, separators=(",", ": "))
d|tojson(indent=none)
u|tojson
u|tojson(ensure_ascii=true)
u|tojson(ensure_ascii=false)
quote|tojson
"/<>&'"|tojson
"\u2028\u007f\u0000\b\f"|tojson
1|tojson
1.0|tojson
1e22|tojson
1e-7|tojson
true|tojson
none|tojson
missing|tojson
(1, 2)|tojson
()|tojson
[[], {}, [{}]]|tojson
[[], {}, [{}]]|tojson(indent=2)
{1: 2, none: 3, true: 4, 2.5: 5}|tojson
{(1, 2): 3}|tojson
{1: 2, "a": 3}|tojson(sort_keys=true)
{2: 1, 1: 2}|tojson(sort_keys=true)
range(3)|tojson
d.items()|tojson
namespace()|tojson
("inf"|float)|tojson
("nan"|float)|tojson
mixed|tojson
big|tojson
[0.1, 1.5, 100.0, 1e21, 123456789.125]|tojson
d|nofilter
d|tojson(foo=1)
d|pprint(1, 2, 3)
l|first|string|upper
l|map("string")|map("replace", "1", "x")|join("+")
-1|abs
2|string ~ "x"
(1, 2)|join ~ "a"
1 is odd
2 is odd
2 is even
-1 is odd
"a" is odd
4 is divisibleby 2
4 is divisibleby(3)
4 is divisibleby 0
4 is not divisibleby 3
1 is defined
missing is defined
missing is not defined
missing is undefined
none is none
missing is none
none is undefined
1 is number
1.5 is number
true is number
"1" is number
1 is integer
true is integer
1.0 is integer
1.0 is float
1 is float
true is boolean
1 is boolean
true is true
1 is true
false is false
"a" is string
1 is string
d is mapping
l is mapping
l is sequence
s is sequence
5 is sequence
range(2) is sequence
l|map("string") is sequence
(l|map("string")) is iterable
l is iterable
s is iterable
5 is iterable
none is iterable
d is iterable
namespace is callable
s.upper is callable
s is callable
missing is callable
missing is sequence
"abc" is lower
"ABC" is upper
"aBc" is lower
1 is lower
1 is sameas 1
none is sameas none
true is sameas true
1 is sameas true
l is sameas l
1 is in [1, 2]
3 is in [1, 2]
3 is not in [1, 2]
"a" is in "abc"
1 is eq 1
1 is equalto 2
1 is ne 2
1 is lt 2
1 is gt 2
1 is le 1
1 is ge 2
1 is lessthan 2
1 is greaterthan 0
"a" is escaped
"upper" is filter
"nope" is filter
"odd" is test
"nope" is test
1 is nope
1 is defined and 2 is defined
missing is defined or 1
1 is defined is defined
not missing is defined
1 is eq(1) and true
x is defined if s else 2
[1, 2, 3][1:]|join
[x|upper for x in w]
a b
1 +
(1
1)
[1
{1}
{"a" 1}
"a
'a
"\x4"
"\N{DASH}"
"\u00e9\U0001f642\x41\101\n\t\\\q\é"
"\
"
1 = 2
a.
a.1b
a..b
.5
5.
1.2.3
@
$x
a ? b : c
a && b
a || b
!a
a ! b
x := 1
lambda: 1
`a`
#
f(a=1, 2)
f(**a, 1)
f(a=1, a=2)
"é" == "é"
äö
"a" in ["a"] and "b" in "abc"
1 in [1] == true
[1, 2, 3,]
(1, 2,)
{"a": 1,}
[,]
raise_exception("boom")
raise_exception()
strftime_now("%Y-%m-%d")
strftime_now("%d %B %Y, %H:%M:%S %A")
strftime_now("%-d/%-m/%y %I %p %j")
strftime_now("%e|%a|%b|%U|%W|%V|%u|%w|%G|%C|%F|%T|%D|%R")
strftime_now("%%Y %f")
strftime_now("%_d %^a %k %l")
strftime_now()
strftime_now(1)
strftime_now is defined
cycler("a", "b").next()
cycler("a", "b").current
cycler()
joiner()()
namespace(1)
range(3) is iterable
loop
loop.index
caller
varargs
kwargs
super()
messages
tools
add_generation_prompt
bos_token ~ eos_token
true
True
TRUE
None
none
null
l.0
l.0.x
d.c.0
d.c.1
users[0].name
users[0]["name"]
users.0.name
(users|first).name
nested[1][1][0]
"abc"[1]
"abc"[1:][0]
{"a": 1}.a
{"a": 1}["a"]
[1, 2][0]
(1 if t else 2) + 1
[1, 2] | first + 1
"a" | upper ~ "b" | upper
not "a" in s
not ("a" in s)
"a" not in s and "b" not in s
-n
+n
-f
-n|abs
(-n)|abs
n.real
t.real
f.is_integer()
2.0.is_integer()
0.1
0.30000000000000004
100000000000000000000.0
1e-5
0.0001
123456.789e3
5e-324
1.7976931348623157e308
2.2250738585072014e-308
4.35
0.1 * 3
1.1 + 2.2
3.0
-0.0
1e2
12345678901234567890.0
"nan"|float
"inf"|float
-("inf"|float)
1.5 // 0.5
5.0 % 3
-5 % 3.0
1e308 * 10
7 / 2
6 / 2
9007199254740993 / 1
"a\tb"
"tab\\n"
'single \'quoted\''
"double \"quoted\""
""
''
"\""
"🙂"
"🙂"|length
"🙂"[0]
"a🙂b"[1:2]
"a🙂b"[::-1]
"e\u0301"|length
"ﬃ"|upper
"ñ"|capitalize
"ab\u00a0cd".split()
"a b".split(" ")
"a" > "B"
"c" > "a"
"a" < "c"
"\"" > " "
["c", "a", "e"]|sort
5|map("upper") is iterable
(html|safe).replace("a", 1)
d.items() in ed
2.5|round(none)
-0.5|filesizeformat
"é" > "z"
"a" < "🙂"
[3, 1] > [2, 9]
(1, 2) < (1, 2, 0)
d == d
l != l
d is sameas d
"x" in {"x": 1}
1 in {"x": 1}
[1] in [[1]]
[1] in {"a": 1}
none in [none]
missing in [missing]
""|default("a", true)|upper
(missing|default({})).x
(missing|default([]))[0]
(missing or "z")
(d.zz or "z")
(d.get("zz") or "z")
d.get("c")[1].get("x", "q")
s.split(" ")[-1].lower()
s.split()|map("lower")|join("_")
"%s"|format("é")
"a=%s" % "b" ~ "c"
"%05.1f" % 3.14159
"%+.3e" % -12345.678
"%g" % 100000
"%g" % 1000000
"%g" % 1e-5
"%s" % 1e16
"%s" % 0.1
"%5%"
{"a": [1, 2]}["a"][::-1]
""".strip("\n").split("\n")

STATEMENTS = [
    # data and white space
    "", "\n", "a", "a\n", "a\n\n", " a ", "{{ 1 }}\n", "{{ 1 }}\n\n", "a\r\nb\rc\n", "{% if t %}\n a\n{% endif %}\n b",
    "  {% if t %}\n  x\n  {% endif %}\ny", "a {% if t %} b {% endif %} c", "a\n  {%- if t %} b {%- endif %}\n c",
    "a\n  {%+ if t %}b{% endif %}", "  {{ 1 }}\n  {{- 2 -}}  \n 3", "{{ 1 -}}\n\n  x", "x  \n {{- 1 }}", "{%- if t -%}  x  {%- endif -%}",
    "a\n  {# c #}\nb", "a\n  {#- c -#}\n  b", "a {# c #} b", "a{#c#}\n\nb", "{# {{ x }} {% if %} #}x", "{# not closed", "{#+ c +#}\nx",
    "\t{% if t %}\n\tx\n\t{% endif %}\n", "{% if t +%}\nx{% endif %}", "{% if t %}\n\n\nx{% endif %}", "x{% if t %}\n{% endif %}\ny",
    "{% raw %}{{ x }} {% if %}{% endraw %}", "{% raw %}\n  a\n  {% endraw %}\nb", "{%- raw -%}  a  {%- endraw -%}  b", "{% raw %}x",
    "a\n  {% raw %}b{% endraw %}\nc", "{% raw +%}x{% endraw %}", "{%raw%}a{%endraw%}", "{{ '{{' }}", "{{ '%}' }}{{ \"}}\" }}", "{", "{ {", "}}", "%}",
    "{ % if %}", "{{ {'a': {'b': 1}} }}", "{{ {'a': 1}.a}}", "{{}}", "{{ }}", "{{ 1", "{% if t %}", "{% endif %}", "{% if %}x{% endif %}",
    "{% if t %}a{% else %}b{% endfor %}", "{% nope %}", "{% %}", "{% 1 %}", "{% if t }}x{% endif %}", "{{ 1 %}", "é{{ u }}é",
    "{% if t %}{% endif %}\nx", " {% set x = 1 %} \n{{ x }}", "x\n\n {%- set y = 2 %}\n{{ y }}", "a\v\f{%- if t %}b{% endif %}",
    "a\u00a0\n\u2003{%- if t %}b{% endif %}", "  {%- if t %}\n  x{% endif %}", "{% if t %}{{ 1 }}\n{% endif %}z", "{% if t -%}\n x {% endif -%}\n y",
    "\n\n{% if t %}\nx\n{% endif %}\n\n", "{{ 'a' }}\n{{ 'b' }}\n", "{{ 1 }} \n", "{% set x %}\n a\n{% endset %}[{{ x }}]",
    # if
    "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}", "{% if no %}a{% elif n == 7 %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif zero %}b{% else %}c{% endif %}", "{% if no %}a{% endif %}", "{% if missing %}a{% else %}b{% endif %}",
    "{% if missing is defined and missing.x %}a{% else %}b{% endif %}", "{% if (1, 2) %}a{% endif %}", "{% if 1, 2 %}a{% endif %}",
    "{% if empty or ed or e or zero or nothing %}a{% else %}b{% endif %}", "{% if t: %}a{% endif %}", "{% if not t %}a{% else %}b{% endif %}",
    "{% if no %}{{ 1|nofilter }}{% endif %}ok", "{% if t %}{{ 1|nofilter }}{% endif %}ok", "{{ 1|nofilter if no else 2 }}",
    "{{ 1|nofilter if t else 2 }}", "{% if no %}{{ 1 is notest }}{% endif %}ok",
    "{% if 1 is notest %}x{% endif %}", "{% for x in l|nofilter %}{% endfor %}", "{{ [1|nofilter] if no }}", "{{ [(1|nofilter if no else 2), 3|nofilter] }}",
    # for
    "{% for x in l %}{{ x }}{% endfor %}", "{% for x in l %}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in l %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in empty %}a{% else %}b{% endfor %}", "{% for x in l %}{{ x }}{% else %}b{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}", "{% for c in u %}[{{ c }}]{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}",
    "{% for x in none if t %}{% endfor %}", "{% for x in missing if t %}a{% else %}b{% endfor %}",
    "{% for x in none %}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in l if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }};{% endfor %}",
    "{% for x in l if x > 5 %}a{% else %}b{% endfor %}", "{% for x in l if loop.index > 1 %}a{% endfor %}", "{% for a, b in nested %}{{ a }}{% endfor %}",
    "{% for a, b in [[1, 2], (3, 4), 'xy'] %}{{ a }}-{{ b }};{% endfor %}", "{% for (a, b), c in [[[1, 2], 3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in l %}{% for y in w %}{{ loop.index }}{{ x }}{{ y }};{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in range(5) %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in range(5) %}{% if x == 3 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% break %}{% else %}e{% endfor %}", "{% for x in l %}{% continue %}{% else %}e{% endfor %}", "{% break %}", "{% continue %}",
    "{% for x in l %}{% for y in l %}{% break %}{% endfor %}{{ x }}{% endfor %}", "{% for x in l %}{% set y %}a{% break %}{% endset %}{% endfor %}[{{ y }}]",
    "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for x in l %}{{ x }}{% endfor %}{{ x }}", "{% set x = 9 %}{% for x in l %}{{ x }}{% endfor %}{{ x }}",
    "{% for x in l %}{% set y = x %}{% endfor %}{{ y }}", "{% set y = 0 %}{% for x in l %}{% set y = y + x %}{{ y }}{% endfor %}{{ y }}",
    "{% set ns = namespace(y=0) %}{% for x in l %}{% set ns.y = ns.y + x %}{% endfor %}{{ ns.y }}", "{% for x in l %}{% if loop.first %}{% set y = x %}{% endif %}{{ y }}{% endfor %}",
    "{% for t2 in tree recursive %}{{ t2.v }}{{ loop.depth }}({{ loop(t2.kids) }}){% endfor %}", "{% for x in tree recursive %}{{ x.v }}{% if x.kids %}[{{ loop(x.kids) }}]{% endif %}{% else %}-{% endfor %}",
    "{% for x in l %}{{ loop(l) }}{% endfor %}", "{% for x in l %}{% set loop = 1 %}{% endfor %}", "{% for loop in l %}{% endfor %}", "{% for x in l %}{{ loop }}{% endfor %}x",
    "{% for x in l|sort %}{{ x }}{% endfor %}", "{% for x in l|map('string') %}{{ loop.length }}{{ x }}{% endfor %}", "{% for x in l|select('odd') %}{{ loop.last }}{{ x }}{% endfor %}",
    "{% for x in l[::-1] %}{{ x }}{% endfor %}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for x in (1, 2) if x %}{{ x }}{% endfor %}", "{% for in l %}{% endfor %}",
    "{% for x l %}{% endfor %}", "{% for x in l %}", "{% for 1 in l %}{% endfor %}", "{% for x.y in l %}{% endfor %}", "{% for true in l %}{% endfor %}",
    "{% for user in users %}{{ user.name }}:{{ user['age'] }};{% endfor %}", "{% for x in l %}\n  {{ x }}\n{% endfor %}\nend", "{%- for x in l -%}\n  {{ x }}\n{%- endfor -%}\nend",
    "{% for x in l %}{% for y in l if y > x %}{{ x }}{{ y }} {% endfor %}{% endfor %}", "{% for x in range(3) %}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }}{% endfor %}",
    "{% set g = l|map('string') %}{{ g|first }}{{ g|list }}{{ g|list }}", "{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}", "{% for x in users|map(attribute='name') %}{{ x }}{% endfor %}",
    "{% for g in users|groupby('age') %}{{ g.grouper }}:{% for x in g.list %}{{ x.name }}{% endfor %};{% endfor %}", "{% for a, b in users|groupby('age') %}{{ a }}{{ b|length }}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in range(5) if not ns.stop %}{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in range(5) if not ns.stop %}{{ x }}{{ loop.last }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    # set
    "{% set x = 1 %}{{ x }}", "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set (x, y) = (1, 2) %}{{ x }}{{ y }}", "{% set x, y = l %}", "{% set x = 1, 2 %}{{ x }}", "{% set x %}a{{ n }}{% endset %}{{ x }}",
    "{% set x | upper %}a{{ n }}{% endset %}{{ x }}", "{% set x | upper | replace('A', 'b') %}a{% endset %}{{ x }}", "{% set s = s ~ '!' %}{{ s }}", "{% set l = l + [4] %}{{ l }}", "{% set 1 = 2 %}",
    "{% set true = 2 %}", "{% set x.y = 2 %}", "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = ns.a + 1 %}{{ ns.a }}{{ ns.b }}{{ ns }}", "{% set d.x = 1 %}", "{% set ns = namespace(a=1) %}{% set ns.a, z = 2, 3 %}{{ ns.a }}{{ z }}",
    "{% set x = missing %}{{ x is defined }}", "{% if t %}{% set x = 1 %}{% endif %}{{ x }}", "{% if no %}{% set x = 1 %}{% endif %}{{ x is defined }}", "{% if no %}{% set n = 1 %}{% endif %}{{ n }}",
    "{{ x }}{% set x = 1 %}{{ x }}", "{{ n }}{% set n = 1 %}{{ n }}", "{% set x = 1 if t %}{{ x }}", "{% set x %}{% endset %}[{{ x }}]", "{% set ns = namespace(l=[]) %}{% for x in l %}{% set ns.l = ns.l + [x * 2] %}{% endfor %}{{ ns.l }}",
    "{% set a = [1] %}{% set b = a %}{% set a = a + [2] %}{{ a }}{{ b }}", "{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}", "{% set x", "{% set x = %}", "{% set = 1 %}", "{% set x = 1 %}{% set x = x + 1 %}{{ x }}",
    "{% set ns = namespace(**{'a': 1}) %}{{ ns.a }}", "{% set x = namespace %}{{ x(a=2).a }}", "{% set x = {'a': 1} %}{% set x = dict(x, b=2) %}{{ x }}", "{% set _ = l %}{{ _ }}", "{% set ns = namespace(f=1) %}{% if ns.g is defined %}a{% else %}b{% endif %}",
    # scoping
    "{% set x = 1 %}{% for i in range(2) %}{{ x }}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}", "{% for i in range(2) %}{{ x is defined }}{% set x = 2 %}{{ x }}{% endfor %}", "{% for i in range(2) %}{{ n }}{% set n = 2 %}{{ n }}{% endfor %}{{ n }}",
    "{% for i in range(2) %}{% if i %}{% set n = 5 %}{% endif %}{{ n }}{% endfor %}", "{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}", "{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% set n = 2 %}{{ m() }}",
    "{% macro m() %}{% set x = 5 %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{{ x }}", "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}", "{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}", "{% filter upper %}{% set y = 'a' %}{{ y }}{% endfilter %}{{ y }}", "{% generation %}{% set y = 'a' %}{{ y }}{% endgeneration %}{{ y }}", "{% set y = 1 %}{% generation %}{{ y }}{% endgeneration %}",
    "{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}", "a {% generation %} b {% endgeneration %} c", "{% if t %}{% for i in [1] %}{% set z = i %}{% endfor %}{% endif %}{{ z }}", "{% for i in [1] %}{% for j in [2] %}{% set q = i + j %}{% endfor %}{{ q }}{% endfor %}",
    "{% for i in [1, 2] %}{% set q = i %}{% for j in [3] %}{{ q }}{% set q = j %}{{ q }}{% endfor %}{{ q }}{% endfor %}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% macro a() %}{{ b() }}{% endmacro %}{{ a() }}{% macro b() %}B{% endmacro %}",
    "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% if t %}{% macro m() %}a{% endmacro %}{% endif %}{{ m() }}", "{% if no %}{% macro m() %}a{% endmacro %}{% endif %}{{ m is defined }}",
    "{% set fs = namespace(m=none) %}{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{% set fs.m = m %}{{ fs.m() }}{% endfor %}", "{% set x = 0 %}{% for i in l %}{% if i == 1 %}{% set x = i %}{% endif %}{{ x }}{% endfor %}{{ x }}",
    # macros
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }};{{ m(1, 3) }};{{ m(b=4, a=5) }};{{ m() }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(a) %}{{ varargs|join }}{% endmacro %}{{ m(1, 2, 3) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=1) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m(a, a) %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m(1) %}{% endmacro %}", "{% macro m() %}a{% endmacro %}{{ m().upper() }}{{ m()|length }}", "{% macro m() %}  a  {% endmacro %}[{{ m() }}]", "{% macro m() -%}  a  {%- endmacro %}[{{ m() }}]",
    "{% macro m(x) %}{{ x is defined }}{% endmacro %}{{ m() }}{{ m(1) }}", "{% macro m(x=missing) %}{{ x is defined }}{% endmacro %}{{ m() }}", "{% macro m() %}a{% endmacro %}{{ m.name }}{{ m.arguments }}", "{% macro m(a, b) %}a{% endmacro %}{{ m.arguments }}{{ m.catch_kwargs }}",
    "{% macro m(a) %}{{ caller() }}{{ a }}{% endmacro %}{% call m(1) %}x{% endcall %}", "{% macro m() %}[{{ caller(1, 2) }}]{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}a{% endmacro %}{% call m() %}x{% endcall %}",
    "{% macro m() %}{% if caller is defined %}y{% else %}n{% endif %}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% call 1 %}{% endcall %}", "{% macro m(l) %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(x) m([1, 2]) %}<{{ x }}>{% endcall %}",
    "{% macro m(d, i=0) %}{% for k, v in d.items() %}{{ ' ' * i }}{{ k }}:{% if v is mapping %}{{ m(v, i + 1) }}{% else %}{{ v }}{% endif %};{% endfor %}{% endmacro %}{{ m({'a': 1, 'b': {'c': 2}}) }}", "{% macro m() %}{{ m2() }}{% endmacro %}{{ m() }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{% macro m(*a) %}{% endmacro %}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}", "{% macro m(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1, *[2], **{'c': 3}) }}{{ m(1, c=3, *[2]) }}", "{{ range(*[1, 3])|list }}", "{{ m(*5) }}", "{{ dict(**5) }}",
    "{% macro m(a) %}{% set a = a + 1 %}{{ a }}{% endmacro %}{{ m(1) }}", "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}", "{% macro m(caller) %}{{ caller() }}{% endmacro %}", "{% macro m(kwargs) %}{{ kwargs }}{% endmacro %}{{ m(1) }}",
    "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}", "{% macro m(x) %}{{ x|tojson }}{% endmacro %}{{ m({'a': [1]}) }}", "{% macro m(a='x', b='y') %}{{ a }}{{ b }}{% endmacro %}{{ m(b='z') }}",
    "{% macro m() %}{% endmacro %}{{ m }}{{ [m] }}", "{% macro m() %}{{ caller }}{% endmacro %}{% call m() %}{% endcall %}",
    # filter blocks, print, with
    "{% filter upper %}a{{ n }}b{% endfilter %}", "{% filter replace('a', 'x')|upper %}abc{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}", "{% filter nofilter %}a{% endfilter %}", "{% filter upper %}a", "{% print 1, 'a' %}", "{% print n %}", "{% with a = 1 %}{{ a }}",
    "{% for x in l %}{% filter upper %}a{% break %}{% endfilter %}{% endfor %}z", "{% filter trim %}  a {% endfilter %}|", "{% with a = 1 %}{% with b = a %}{{ b }}{% endwith %}{% endwith %}",
    # cyclers, joiners
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.next() }}", "{% set j = joiner(', ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% set j = joiner() %}{{ j() }}{{ j() }}",
    # refused
    "{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}", "{% do l.append(1) %}", "{% trans %}a{% endtrans %}", "{% debug %}", "{% endfor %}", "{% else %}", "{% set x = 1 %}{% endset %}",
    "{{ [].__class__.__base__ }}", "{{ ''['__cla' ~ 'ss__'] }}", "{{ (l|attr('__class__')) }}", "{{ l|map(attribute='__class__')|list }}", "{{ users|map('attr', '__class__')|list }}", "{{ '{0.__class__.__init__}'.format(l) }}", "{{ '%s' % l.__class__ }}", "{{ range.__class__ }}",
    "{{ namespace.__init__.__globals__ }}", "{{ raise_exception.__globals__ }}", "{{ self._TemplateReference__context }}", "{{ ns.__dict__ if ns else 1 }}", "{% set ns = namespace() %}{{ ns.__class__ }}", "{{ 'x' * 100000000000 }}", "{{ messages.append(1) }}{{ messages|length }}", "{{ d.items.__self__ }}",
    "{{ l.extend([1]) }}", "{{ l.insert(0, 1) }}", "{{ l.remove(1) }}", "{{ l.reverse() }}", "{{ l.clear() }}", "{{ d.popitem() }}",
    # line numbers and longer pieces
    "a\nb\n{{ missing.x }}", "{% for m in users %}\n{{ m.name }}\n{% endfor %}", "{%- for m in users %}\n  {%- if m.age > 26 %}\n    {{- m.name }}\n  {%- endif %}\n{%- endfor %}\nend\n",
    "{% set parts = [] %}{% for u2 in users %}{% set parts = parts + [u2.name] %}{% endfor %}{{ parts }}", "{{ 'a' if n > 5 and s.startswith('H') else 'b' }}{{ '\\n' }}x", "{% for x in [{'role': 'user', 'content': [{'type': 'text', 'text': 'a'}]}] %}{{ x.content|selectattr('type', 'equalto', 'text')|map(attribute='text')|join }}{% endfor %}",
    "{% set content = s %}{% if '</think>' in content %}{{ content.split('</think>')[-1] }}{% else %}{{ content }}{% endif %}", "{{ (users|selectattr('age', 'gt', 26)|list|last).name }}", "{%- set x -%}\n  a\n{%- endset -%}\n[{{ x }}]", "{{ ''.join(['a', 'b']) }}{{ ', '.join(w) }}",
    "{{ '<|im_start|>' + 'user' + '\\n' + s + '<|im_end|>' + '\\n' }}", "{{ users[-1:][0].name }}{{ users[0:1]|length }}", "{{ {'type': 'function', 'f': {'n': 'x'}} | tojson(indent=4) | indent(2) }}", "{% for i in range(3) %}{% for j in range(i) %}{{ i }}{{ j }},{% endfor %}{% endfor %}",
    "{% set a = 1 %}{% set b = 2 %}{% set a, b = b, a %}{{ a }}{{ b }}", "{{ [1, 2, 3]|map('string')|map('length')|sum }}", "{{ 'x' ~ (1 if no else 2) ~ 'y' }}", "{{ 1 }}{{ 2 }}{# c #}{{ 3 }}", "{{ not missing }}{{ missing is not defined or missing }}",
]


def unique(items):
    return list(dict.fromkeys(items))


SNIPPETS = unique(["{{ " + e + " }}" for e in EXPRESSIONS] + STATEMENTS)
