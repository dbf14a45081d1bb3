"""Writes complete.jsonl: lines of prose and code that stop at a cursor, and what must come there, written for this project.

    python3 make_complete.py > complete.jsonl

A case is PREFIX<|>EXPECTED, or PREFIX<|>EXPECTED<|>SUFFIX where something stands behind the cursor; \\n is a line end.
Cursors stand behind words, within words, and behind blanks, as they do when people type.
"""
import json

CASES = r"""
The capital of France is<|> Paris
The opposite of hot is<|> cold
Water freezes at zero degrees Cel<|>sius
The sun rises in the east and sets in the<|> west
Once upon a time there<|> was
Thank you very<|> much
I look forward to hearing from<|> you
She was born in New York<|> City
The days of the week are Monday, Tuesday, Wednesday,<|> Thursday
One, two, three, four,<|> five
January, February, March,<|> April
Romeo and<|> Juliet
A bird in the hand is worth two in the<|> bush
To be or not to<|> be
Ladies and<|> gentlemen
The United States of<|> America
Merry Christmas and a happy New<|> Year
The United King<|>dom
As soon as poss<|>ible
In the beginning God created the heaven and the<|> earth
The chemical symbol for water is H<|>2
The quick brown fox jumps over the lazy<|> dog
Please do not hes<|>itate
Best re<|>gards
Albert Ein<|>stein
The author of Hamlet is William<|> Shakespeare
Practice makes<|> perfect
Better late than<|> never
An apple a day keeps the doctor<|> away
Actions speak louder than<|> words
The Pacific Oc<|>ean
Mount Ever<|>est
The Statue of Lib<|>erty
North, south, east and<|> west
Red, orange, yellow, green, blue<|>,
It is raining cats and<|> dogs
For exam<|>ple
On the other<|> hand
In other<|> words
Artificial intel<|>ligence
The World Health Organ<|>ization
The Great Wall of<|> China
The largest planet in our solar system is<|> Jupiter
Plants use sunlight to make food in a process called photo<|>synthesis
Spring, summer, autumn and<|> winter
Twinkle, twinkle, little<|> star
Neil Armstrong was the first man on the<|> moon
The Second World<|> War
He opened the door and walked in<|>to
How are<|> you
import numpy as<|> np
import pandas as<|> pd
import matplotlib.pyplot as<|> plt
from collections import default<|>dict
for i in<|> range
if __name__ ==<|> "__main__"
if __name__ == "__main<|>__"
def __init__(<|>self
with open("data.txt") as<|> f
#include <std<|>io.h>
int main(<|>
return 0<|>;
for (int i = 0; i < n; i<|>++
public static void main(<|>String
System.out.print<|>ln
console.<|>log
<html><head></head><body></body></<|>html>
<!DOCTYPE<|> html
SELECT * FR<|>OM
SELECT name FROM users WHERE id<|> =
git commit -<|>m
try:\n    x = int(s)\nexcept<|> ValueError
def fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) +<|> fib
def is_even(n):\n    return n % 2 ==<|> 0
def area(width, height):\n    return width *<|> height
while True:\n    line = input()\n    if not line:\n        <|>break
items = [1, 2, 3]\nfor item in<|> items
lambda x: x<|> *
const express = require(<|>'express'
const fs = require(<|>'fs'
export default<|> function
let x = document.getElementBy<|>Id
def add(a, b):\n    return <|>a + b<|>\n\nprint(add(2, 3))\n
def multiply(a, b):\n    return <|>a * b<|>\n\nprint(multiply(2, 3))\n
total = 0\nfor price in prices:\n    total += <|>price<|>\nprint(total)\n
def first(items):\n    return items[<|>0<|>]\n
def last(items):\n    return items[<|>-1<|>]\n
with open(path) as f:\n    text = <|>f.read()<|>\nprint(text)\n
int max(int a, int b) {\n    return a > b ? <|>a<|> : b;\n}\n
int square(int x) {\n    return <|>x * x<|>;\n}\n
for (int i = 0; i < 10; <|>i++<|>) {\n    sum += i;\n}\n
def greet(name):\n    print(f"Hello, {<|>name<|>}!")\n
import os\n\nfor name in os.<|>listdir<|>("."):\n    print(name)\n
import json\n\nwith open("a.json") as f:\n    data = json.<|>load<|>(f)\n
class Point:\n    def __init__(self, x, y):\n        self.x = x\n        <|>self.y = y<|>\n\np = Point(1, 2)\nprint(p.x, p.y)\n
def is_empty(s):\n    return len(s) <|>==<|> 0\n
x = 5\ny = 7\nx, y = <|>y, x<|>\nprint("swapped:", x, y)\n
names = ["Eve", "Ann"]\nnames.<|>sort<|>()\nprint(names)  # ['Ann', 'Eve']\n
const double = (x) => <|>x * 2<|>;\nconsole.log(double(4)); // 8\n
function isOdd(n) {\n    return n % 2 <|>!<|>== 0;\n}\n
SELECT city, COUNT(*) FROM people GROUP <|>BY<|> city;\n
def factorial(n):\n    if n == 0:\n        return 1\n    return n * <|>factorial(n<|> - 1)\n
if (pointer == <|>NULL<|>) {\n    return -1; /* out of memory */\n}\n
print("done"<|>)
"""

for line in CASES.strip().split("\n"):
    parts = [part.replace("\\n", "\n") for part in line.split("<|>")]
    item = {"input": parts[0], "expected": parts[1]}
    if len(parts) > 2:
        item["suffix"] = parts[2]
    print(json.dumps(item, ensure_ascii=False))
