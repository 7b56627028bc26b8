"""Writes jinja/testdata/rows.jsonl: templates with the output, or the failure,
of Python's Jinja2 3.1 set up as transformers does for chat templates.

    python3 gen_rows.py > rows.jsonl

The rows are hand-picked constructs and a seeded sample of random expressions,
statements, formats and string methods. Rows that print an address or the
representation of bytes are left out.
"""
import datetime
import json
import random
import re
import warnings

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

warnings.simplefilter("ignore")
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)

class Gen(Extension):
    tags={"generation"}
    def parse(self,parser):
        lineno=next(parser.stream).lineno
        body=parser.parse_statements(["name:endgeneration"],drop_needle=True)
        return nodes.CallBlock(self.call_method("_s"),[],[],body).set_lineno(lineno)
    @jinja2.pass_eval_context
    def _s(self,ctx,caller): return caller()


def env():
    e=ImmutableSandboxedEnvironment(trim_blocks=True,lstrip_blocks=True,extensions=[Gen,jinja2.ext.loopcontrols])
    def raise_exception(message): raise jinja2.exceptions.TemplateError(message)
    def tojson(x,ensure_ascii=False,indent=None,separators=None,sort_keys=False):
        return json.dumps(x,ensure_ascii=ensure_ascii,indent=indent,separators=separators,sort_keys=sort_keys)
    e.filters["tojson"]=tojson
    e.globals["raise_exception"]=raise_exception
    e.globals["strftime_now"]=lambda format: NOW.strftime(format)
    return e


ENV=env()


def emit(kind, template, context, name=None):
    if kind == "expr" and re.search(r"\)\[[^'\]]*:", template):
        return False  # slices of constants: see docs/jinja.md
    row = {"case": kind, "template": template}
    if name: row["shared"] = name
    else: row["context"] = context
    try:
        row["output"] = ENV.from_string(template).render(**json.loads(json.dumps(context)))
        row["output"].encode()
    except Exception as e:
        row.pop("output", None)
        row["error"] = type(e).__name__
    if re.search(r" at 0x[0-9a-f]+|slice\(|\bb['\"]|Markup\.", row.get("output", "")): return False
    print(json.dumps(row, ensure_ascii=False))
    return True

HAND = r'''
{{ x.y is defined }}
{{ undef }}|{{ undef|default('d') }}|{{ undef is none }}|{{ undef|length }}|{{ undef|list }}
{{ undef.attr }}
{{ undef['a'] }}
{{ undef() }}
{{ undef + 1 }}
{{ undef|int }}
{{ undef < 1 }}
{{ undef == undef2 }} {{ undef in [1] }} {{ 1 in undef }}
{{ [1].append(2) }}
{{ [1].append is defined }} {{ {}.update is defined }} {{ ''.__class__ is defined }}
{{ ''.__class__.__mro__ }}
{{ 'abc'.__len__() }}
{{ ().__class__.__base__ }}
{{ d.items }}
{{ d['items'] }} {{ {'items':1}['items'] }} {{ {'keys':1}.keys() }} {{ {'a':1}['keys']()|list }}
{{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789012345680.0 }} {{ 1e-4 }} {{ 1e-5 }} {{ -0.0 }} {{ 0.1+0.2 }}
{{ 10**20 }} {{ 2**0.5 }} {{ 2**-1 }} {{ -7//2 }} {{ -7%3 }} {{ 7//-2.0 }} {{ 7%-3 }} {{ true+true }} {{ 2**3**2 }} {{ -2**2 }}
{{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }} {{ 1_0.5e1_0 }} {{ 00 }}
{{ 0123 }}
{{ 10**5000 }}
{{ 'a' < 'b' < 'c' }} {{ 1 < 2 > 1 }} {{ 1 == 1 != 2 }} {{ 3 in [1,3] in [true] }} {{ not 1 in [2] }} {{ 1 not in [2] }}
{{ 1 < 'a' }}
{{ [1,2] < [1,3] }} {{ (1,) < (1,2) }} {{ 'a' * 3 }} {{ 3 * [0] }} {{ 'a' * -1 }} {{ [1] + [2] }} {{ (1,)+(2,) }}
{{ [1] + (2,) }}
{{ 'a' + 1 }}
{{ 'a' ~ 1 ~ none ~ [1] ~ 2.0 }}
{{ 'a' 'b' "c" }} {{ 'it''s' }} {{ "q\"q" }} {{ '\x41\u00e9\101\n'|length }} {{ '\é' }} {{ '\z' }}
{{ '\x4' }}
{{ 'abc
def' }}
{{ (1) }} {{ (1,) }} {{ () }} {{ 1, 2 }} {{ [1,] }} {{ {'a':1,} }} {{ {1:2, 1.0:3, true:4} }}
{{ {[1]:2} }}
{{ 'a' if false }}|{{ ('a' if false) is defined }}|{{ 1 if 0 else 2 if 0 else 3 }}
{{ not not true }} {{ - -1 }} {{ +-1 }} {{-1}} {{+1}} {{ -1|abs }} {{ (-1)|abs }} {{ 2|string * 3 }}
{{ 1.__class__ }}
{{ [1,2,3].1 }} {{ {'a':{'b':5}}.a.b }} {{ [[1,2],[3]].0.1 }}
{{ foo.bar.baz }}
{{ 'abc'[1] }} {{ 'abc'[-1] }} {{ 'abc'[5] }}| {{ 'añ🙂'[2] }} {{ 'abcdef'[1:5:2] }} {{ [1,2,3][::-1] }} {{ (1,2,3)[1:] }} {{ range(10)[2:8:3] }}
{{ 'abc'['upper']() }} {{ [1]['count'](1) }}
{{ range(3) }} {{ range(1,7,2)|list }} {{ range(5,0,-2)|list }} {{ range(3)|length }} {{ 2 in range(3) }} {{ range(0)|first is defined }}
{{ range(100001) }}
{{ dict(a=1, **{'b':2}) }} {{ dict([('x',1)]) }} {{ dict({'a':1}, b=2) }}
{{ ['a']|sum }}
{% set c = cycler(1,2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.current }}
{% set j = joiner('|') %}{{ j() }}a{{ j() }}b{{ j() }}
{% set ns = namespace(a=1, b=[]) %}{% set ns.a = ns.a + 1 %}{% set ns.c = 'n' %}{{ ns.a }}{{ ns.c }}{{ ns.zz is defined }} {{ ns }} {{ ns['a'] }}
{% set d.x = 1 %}
{% set ns = namespace({'q':1}, r=2) %}{{ ns.q + ns.r }}{% set ns.q, z = 5, 6 %}{{ ns.q }}{{ z }}
{{ namespace(_a=1)._a is defined }}
{{ raise_exception('boom') }}
{% if false %}{{ raise_exception('boom') }}{% endif %}ok
{{ strftime_now('%Y-%m-%d %H:%M:%S %j %a %A %b %B %-d %e %I %p %y %U %W %w %u %V %G %% %C %D %F %T %R %c %x %X %z|%Z %f') }}
{{ strftime_now('%d %B %Y') }} {{ strftime_now('%-m/%-d/%y %_H %^a %#p %10d %k|%l|%P|%h|%n|%t|%s'|replace('%s','')) }} {{ strftime_now('') }}
{{ [1, none, true, 1.0, 'a"b\'c\n', {'k': (1,2)}] }}
{{ [1, none, true, 1.0, 'a"b\'c\n\u2028', {'k': (1,2)}]|tojson }}
{{ {'b':[1,{'c':[]}],'a':{}}|tojson(indent=2) }} {{ {'b':1,'a':2}|tojson(sort_keys=true, separators=(',',':')) }} {{ 'é<>&\''|tojson }} {{ 'é🙂'|tojson(ensure_ascii=true) }} {{ {1:2, none:3, true:4, 1.5:6}|tojson }} {{ [1,2]|tojson(indent='--') }} {{ [1,2]|tojson(indent=0) }}
{{ undef|tojson }}
{{ range(2)|tojson }}
{{ [1]|map('string')|tojson }}
{% for x in [1,2,3] %}{{ loop.index }}/{{ loop.length }}{% if not loop.last %}, {% endif %}{% endfor %}
{% for k, v in {'a':1,'b':2}.items() %}{{ k }}={{ v }};{% endfor %}{% for a,(b,c) in [(1,(2,3))] %}{{ a+b+c }}{% endfor %}
{% for a, b in [[1,2,3]] %}{% endfor %}
{% for a, b in [[1]] %}{% endfor %}
{% for x in [1,2,3,4] if x is even %}{{ x }}:{{ loop.index }}of{{ loop.length }} {% else %}none{% endfor %}
{% for x in [] %}{% else %}empty{% endfor %}{% for x in [1] %}{% continue %}{% else %}E{% endfor %}{% for x in [1] %}{% break %}{% else %}E{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for x in [1,2,3] %}{% set y = x %}{% endfor %}{{ y is defined }}{% for x in [1] %}{% endfor %}{{ x is defined }}
{% set y = 0 %}{% for x in [1,2] %}{% set y = y + x %}{{ y }}{% endfor %}{{ y }}
{% for x in [1,2,3] %}{{ loop.previtem|default('-') }}{{ loop.nextitem|default('-') }} {{ loop.cycle('a','b') }} {{ loop.changed(x//2) }} {{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}
{% for n in [{'v':1,'k':[{'v':2,'k':[{'v':3}]}]}] recursive %}{{ n.v }}@{{ loop.depth }}{% if n.k %}({{ loop(n.k) }}){% endif %}{% endfor %}
{% for x in [1] %}{{ loop([2]) }}{% endfor %}
{% for loop in [1] %}{% endfor %}
{% break %}
{% for x in [1,2] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for x in [1,2] %}{% for y in [1,2] %}{% if y == 2 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}
{% for i in [1] %}{{ q }}{% endfor %}{% set q = 2 %}{{ q }}
{% if true %}{% set q = 1 %}{% endif %}{{ q }}{% with q = 5, r = q %}{{ q }}{{ r }}{% set q = 7 %}{{ q }}{% endwith %}{{ q }}
{% macro m(a, b='x', *c) %}{% endmacro %}
{% macro m(a, b='x') %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}{{ m(1,2,3,4,z=5) }}{{ m(b=1) }}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.caller }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m(a, a) %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% macro m(x) %}<{{ caller(x, k=2) }}>{% endmacro %}{% call(v, k=1) m('p') %}{{ v }}{{ k }}{% endcall %}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro f(n) %}{{ n }}{% if n > 0 %},{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% macro g() %}{{ later }}{% endmacro %}{% set later = 'L' %}{{ g() }}
{% call 1 %}{% endcall %}
{% filter upper|replace('A','-') %}abc{{ 'a' }}{% endfilter %}{% set t | trim | upper %}  hi {{ 1 }} {% endset %}[{{ t }}]
{% autoescape true %}{{ '<' }}{{ '<'|safe }}{{ '<' ~ '>' }}{{ ['<']|join('&') }}{% endautoescape %}{{ '<' }}{{ '<'|e|e }}{{ ('<'|e) + '>' }}{{ '%s'|e % '<' }}
{% raw %}{{ x }}{% if %}{# #}{% endraw %}{% raw -%}  y {%- endraw %}
{% generation %}{% set g = 1 %}a{{ g }}{% endgeneration %}{{ g is defined }}
{% block a %}A{{ 1 }}{% endblock %}{{ self.a() }}{% block a2 scoped %}{% endblock a2 %}
{% block a %}{% endblock %}{% block a %}{% endblock %}
{% print 1, 'a' %}{% print %}
{% include 'x' %}
{% import 'x' as y %}
{% extends 'x' %}
{% from 'x' import y %}
{% unknown %}
{% if x %}
{% endif %}
{% if %}{% endif %}
{{ }}
{{ 1 + }}
{{ 1 }
{{ (1 }}
{{ [1) }}
{{ 'abc }}
{% set 1 = 2 %}
{% set true = 2 %}
{{ a b }}
{{ a.1b }}
{{ f(a=1, a=2) }}
{{ f(a=1, 2) }}
{{ f(*[1], *[2]) }}
{{ x|nofilter }}
{{ x is notest }}
{% if false %}{{ x|nofilter }}{% endif %}fine
{{ 'a' if true else 'b'|nofilter }}
{{ x!y }}
{# unclosed
{#}x
a{# c #}b{#- c -#} d {#+ e #}
 {{- 1 -}} |  {{ 2 }}  | {%- if true -%} x {%- endif -%} y
{%+ if true +%} x {%+ endif %} y
{{ [3,1,2]|sort }}{{ ['b','A','c']|sort }}{{ ['b','A']|sort(case_sensitive=true) }}{{ [{'a':2},{'a':1}]|sort(attribute='a') }}{{ [{'a':1,'b':2},{'a':1,'b':1}]|sort(attribute='a,b',reverse=true) }}
{{ [1,'a']|sort }}
{{ [{'r':'u','n':1},{'r':'a','n':2},{'r':'u','n':3}]|groupby('r') }}{% for g in [{'r':'U'},{'r':'u'}]|groupby('r') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}{% for r, l in [{'r':1}]|groupby('r') %}{{ r }}{{ l }}{% endfor %}
{{ [1,2,3,4,5]|batch(2,'x')|list }}{{ [1,2,3,4,5]|slice(2)|list }}{{ [1,1,2]|unique|list }}{{ ['a','A']|unique|list }}{{ [1,2]|sum(start=10) }}
{{ [[1,2],[3]]|map('first')|list }}{{ ['1','2']|map('int')|sum }}{{ [{'a':{'b':1}},{}]|map(attribute='a.b')|list }}
{{ [{'a':1},{}]|map(attribute='a', default=0)|list }}{{ [1,2,3]|select('>', 1)|list }}{{ [0,1]|select|list }}{{ [{'a':1},{'a':2}]|selectattr('a','gt',1)|list }}{{ [1,none]|reject('none')|list }}
{{ 'abc'|first }}{{ {'a':1}|first }}{{ []|first is undefined }}{{ [1,2]|last }}{{ 'abc'|last }}{{ {'a':1,'b':2}|last }}
{{ [1]|map('upper')|last }}
{{ [1,2]|max }}{{ ['b','A']|min }}{{ [{'a':3},{'a':1}]|max(attribute='a') }}{{ []|max is undefined }}
{{ 2.5|round }}{{ 3.5|round }}{{ 2.675|round(2) }}{{ 42|round }}{{ 1234.5|round(-2) }}{{ 2.1|round(method='ceil') }}{{ 2.19|round(1,'floor') }}{{ 2.5|round|int }}
{{ '42.7'|int }}{{ 'x'|int(-1) }}{{ '0x1f'|int(base=16) }}{{ none|int }}{{ '1e3'|float }}{{ 'x'|float }}{{ true|int }}{{ ' 7 '|int }}
{{ 'hello world foo'|truncate(11) }}|{{ 'hello world'|truncate(5,true,'..') }}|{{ 'a b c d e f'|wordwrap(3) }}|{{ 'foo-bar baz'|wordwrap(5) }}|{{ 'x\ny\n\nz'|indent(2) }}|{{ 'x\ny'|indent('> ',first=true) }}|{{ 'x\n\ny'|indent(2,blank=true) }}
{{ 'hello wORLD-foo (bar)'|title }} {{ "it's o'neil"|title }} {{ "it's"|capitalize }} {{ 'ǆ ﬁ ß'.title() }} {{ 'ΑΣ ΣΑ'.lower() }} {{ 'ß'.upper() }} {{ 'İ'.lower()|length }} {{ 'ﬀ'.capitalize() }}
{{ '²'.isdigit() }}{{ '½'.isnumeric() }}{{ '٣'.isdecimal() }}{{ '٣'|int }}{{ 'ª'.isalpha() }}{{ 'Ⅷ'.isupper() }}{{ 'ǅ'.istitle() }}{{ '\u00a0'.isspace() }}{{ 'a_1'.isidentifier() }}
{{ 'a\x1cb\u2028c\r\nd'.splitlines() }} {{ ' a  b '.split() }} {{ ' a  b '.split(' ') }} {{ 'a,b,c'.rsplit(',',1) }} {{ ' a b '.split(none,1) }} {{ 'abc'.split('') }}
{{ '{} {1}'.format(1,2) }}
{{ '{:>5}|{:<5}|{:^5}|{:05d}|{:,}|{:.2f}|{:x}|{!r}|{a[0]}|{b.c}'.format(1,2,3,4,12345,1.005,255,'q',a=[9],b={'c':8}) }} {{ '{:%}'.format(0.5) }} {{ '{:e}'.format(12345.678) }} {{ '{:g}'.format(1e10) }}
{{ '%5d|%-5d|%05d|%+d|%x|%o|%e|%g|%s|%r|%c|%%|%.3s|%5.1f' % (1,2,3,4,255,8,1.5,1e10,'s','r','c','abcdef',2.25) }} {{ '%(a)s %(b)d' % {'a':1,'b':2} }} {{ '%s' % [1] }}
{{ '%d' % 'x' }}
{{ '%s %s' % (1,) }}
{{ '%s' % (1,2) }}
{{ 'a-b'.partition('-') }}{{ 'a-b-c'.rpartition('-') }}{{ 'x'.join('abc') }}{{ 'abc'.translate({97:'A', 98:none}) }}{{ 'a\tb'.expandtabs(4) }}{{ '-5'.zfill(4) }}{{ 'ab'.center(5,'*') }}{{ 'aXbX'.removesuffix('X') }}{{ 'abcabc'.find('c',3) }}{{ 'aaa'.count('a',1) }}{{ 'aaa'.replace('','-') }}
{{ ','.join([1]) }}
{{ [1,'a',none]|join(',') }}{{ [{'x':1},{'x':2}]|join('-',attribute='x') }}{{ 'abc'|join('.') }}
{{ 'a b/c?d=é'|urlencode }} {{ {'a':'b c','d':1}|urlencode }} {{ '<b>x</b> &amp; y'|striptags }} {{ {'class':'a','id':none,'x':'<'}|xmlattr }} {{ 'see http://x.org/a?b=1, or www.y.com (mail a@b.co)'|urlize }} {{ 1500|filesizeformat }} {{ 1024|filesizeformat(true) }}
{{ ['word ' * 30, {'b': range(3)|list, 'a': 'x' * 70}]|pprint }}
{{ {'b':2,'a':1}|dictsort }} {{ {'b':1,'A':2}|dictsort(by='value',reverse=true) }} {{ {'a':1}|items|list }} {{ d.b|attr('real') }} {{ 'x'|attr('upper') is callable }}
{{ 1 is integer }}{{ 1.0 is float }}{{ true is integer }}{{ true is number }}{{ 'a' is string }}{{ [] is sequence }}{{ {} is mapping }}{{ 'a' is iterable }}{{ 1 is odd }}{{ 6 is divisibleby 3 }}{{ 1 is sameas true }}{{ none is none }}{{ 'a' is in 'abc' }}{{ 1 is not none }}{{ 2 is gt 1 }}{{ 'upper' is filter }}{{ 'odd' is test }}{{ dict is callable }}{{ ('<'|e) is escaped }}{{ 'AB' is upper }}
{{ 1 is odd is even }}
{{ 'a' is odd }}
{{ m }} {{ messages }}
{{ [1,2,3]|random in [1,2,3] }}
{{ {'a':1}['abc'[0:1]] }}|{{ {}['abc'[0:1]] }}|{{ [1,2,3][[1,2][0:1][0]] }}|{{ [1,2,3][[0,1][0:2]] is defined }}|{{ {'b':2}[('abc')[1:][:1]] }}
{% filter length %}abc{% endfilter %}
{% filter first %}{% endfilter %}
{% filter first %}ab{% endfilter %}{% filter e|upper %}<{% endfilter %}
{% call dict() %}x{% endcall %}
{{ '{0.real}{}'.format(1,2) }}{{ '{}{0.real}{}'.format(1,2) }}
{{ '{0}{}'.format(1,2) }}
{{ '{.real}'.format(1) }}
{{ undef|attr('__foo__') }}{{ undef|attr('__class__') }}
{{ undef|attr('foo') }}
{% for x in [1,2] recursive %}{% block b1 scoped %}{{ x }}{{ y }}{% endblock %}{{ self.b1() }}{% endfor %}
{% set q = 1 %}{% for x in [1,2] %}{% block b1 scoped %}{{ x }}{{ self.b2() }}{% endblock %}{{ self.b1() }}{% endfor %}{% set q = 2 %}{% block b2 %}<{{ x }}{{ q }}>{% endblock %}
{{ self.b() }}{% block b required %}  {% endblock %}
{{ dict.from_keys([('a',1)]) }}{{ dict.foo is defined }}{{ dict['x']({'a':1}, b=2) }}{{ dict.foo }}{{ dict[1] }}{{ dict['a'] is callable }}
{{ dict.fromkeys('ab') }}{{ dict.fromkeys([1,2], 0) }}{{ dict.keys(d) }}{{ dict.get(d,'b') }}
{{ dict.get() }}
{{ '%s %(a)s' % {'a': 1} }} {{ '%(a)s%%' % {'a': 1} }} {{ '%(a)*d' % {'a': 3} }}
{{ '%(a)s %s' % {'a': 1} }}
{{ '%(a)s %(b)5.2f %(a)r' % {'a': 'x', 'b': 2} }}
{{ dict.get(1) }}
{{ dict.foo.bar }}{{ dict.__class__ }}{{ dict.foo.bar() }}
{{ self }}
{{ 'é🙂x'[1] }}{{ 'é🙂x'[-1] }}{{ 'é🙂x'[3] }}
'''.strip("\n").split("\n")

LINES = [
    "a\n  {% if true %}\n  b\n  {% endif %}\n\nc\n\n",
    "{% for x in [1,2] %}\n  {{ x }}\n{% endfor %}\n",
    "  {%- for x in [1,2] %}\n  {{- x }}\n  {%- endfor %}  \n  end",
    "x {% if true %}\n y{% endif %}\nz",
    "{{ 1 }}\n{{ 2 -}}\n {{ 3 }}\n",
    "a\r\nb\rc\n",
    "  {# c #}\n  d\n\t{% set x = 1 %}\n  {%+ set y = 2 %}\n!",
    "{% raw %}\n a {% endraw %}\n b",
    "{% set x %}\n  hi\n{% endset %}\n[{{ x }}]",
    "{% if a %}\n1\n{% elif true %}\n2\n{% else %}\n3\n{% endif %}\n",
    "{% macro m(a,\n  b=2) %}\n{{ a\n ~ b }}\n{% endmacro %}\n{{ m(\n1) }}",
    "\n\n{{ 1 }}\n\n", "{", "{{ '{{' }}", "{ {", "a{%", "{{ 'a\nb' }}", "{% raw %}", "{#",
]
CTX = {"d": {"b": 1, "a": {"c": [1, 2]}}, "messages": [{"role": "user", "content": "hi"}], "m": None}
print(json.dumps({"shared": "hand", "context": CTX}))
for t in HAND + LINES: emit("hand", t, CTX, "hand")


def expressions(count):
    R=random.Random(7)
    CTX=json.dumps({"s":"héllo Wörld","e":"","n":3,"neg":-7,"big":10**25,"f":2.5,"g":-0.1,"t":True,"z":None,"xs":[3,1,2],"ws":["b","A","c"],"d":{"b":1,"a":{"c":[1,2]},"items":5},"ms":[{"role":"user","content":"Hi <b>","n":2},{"role":"assistant","content":"yo\nthere","n":1},{"role":"user","content":None}],"mix":[1,"a",None,2.0,True,[1],{"k":"v"}],"ss":"  a,b , c  ","uni":"ΑΣ ǆ ﬁ ß 你好🙂","html":"<p class='x'>a & b</p>"})
    atoms=["s","e","n","neg","big","f","g","t","z","xs","ws","d","ms","mix","ss","uni","html","undef","1","0","-1","2.0","1.5e3","'abc'","'x'","' '","''","[]","{}","()","[1,2]","(1,'a')","{'a':1,'b':'c'}","true","false","none","range(4)","dict(a=1)","d.a","d.a.c","ms[0]","ms[0].content","ms[-1].content","xs[0]","xs|first","'1'","'%s'","'{}'","3.7","1e16","100","'A-b c'","namespace(a=1)"]
    binops=["+","-","*","/","//","%","**","~"," and "," or ","==","!=","<","<=",">",">="," in "," not in "]
    filters0="abs capitalize count d default e escape filesizeformat first float forceescape int items list last length lower max min pprint reverse round safe sort string striptags sum title tojson trim unique upper urlencode urlize wordcount wordwrap xmlattr dictsort join".split()
    filtersA=["default('q')","default('q',true)","join(',')","join(s)","replace('a','b')","replace('l','L',1)","round(1)","round(0,'floor')","round(1,'ceil')","indent(2)","indent(2,true)","indent('> ',true,true)","truncate(5)","truncate(5,true)","truncate(6,false,'..',0)","wordwrap(5)","wordwrap(4,false)","center(20)","int(5)","int(0,16)","float(1.5)","batch(2)|list","batch(2,'-')|list","slice(2)|list","slice(3,'z')|list","map('upper')|list","map(attribute='role')|list","map(attribute='role',default='?')|list","map('default','?')|list","select|list","select('string')|list","reject('none')|list","selectattr('role','equalto','user')|list","selectattr('n')|list","rejectattr('n','defined')|list","groupby('role')","groupby('n',default=0)","sort(reverse=true)","sort(attribute='n')","sort(case_sensitive=true)","sort(attribute='role,n')","dictsort(by='value')","dictsort(true,'key',true)","tojson(indent=2)","tojson(ensure_ascii=true)","tojson(separators=(',',':'))","tojson(sort_keys=true)","tojson(indent=1,sort_keys=true)","attr('a')","attr('real')","format('x')","format(1,2)","trim('a')","unique(true)|list","unique(attribute='role')|list","sum(start=1)","sum(attribute='n')","max(attribute='n')","min(true)","urlize(5)","filesizeformat(true)","map('int')|sum","map('tojson')|join","first","last","string","list"]
    testsx="odd even defined undefined none boolean true false integer float lower upper string mapping number sequence iterable callable escaped filter test".split()
    testsA=["divisibleby 2","divisibleby(3)","sameas none","sameas true","in [1,'a']","in 'abc'","eq 1","equalto 'x'","ne 1","gt 1","ge 2","lt 2","le 'a'","lessthan 3","greaterthan 0"]
    meths=["upper()","lower()","title()","capitalize()","swapcase()","casefold()","strip()","strip('a')","lstrip()","rstrip('c')","split()","split(',')","split(' ',1)","rsplit(' ',1)","rsplit(maxsplit=1)","splitlines()","splitlines(true)","startswith('a')","endswith(('c','x'))","startswith('b',1)","find('b')","rfind('l')","index('b')","rindex('l')","count('l')","count('')","replace('b','BB')","replace('','-')","replace('l','',1)","zfill(6)","center(9,'*')","ljust(7,'.')","rjust(7)","isdigit()","isalpha()","isalnum()","isupper()","islower()","istitle()","isspace()","isnumeric()","isdecimal()","isidentifier()","isprintable()","isascii()","partition('b')","rpartition('l')","removeprefix('a')","removesuffix('c')","join(['p','q'])","join(ws)","format(1,'z')","format(*xs)","format(a=1)","expandtabs()","expandtabs(3)","translate({97:'Z',98:none})","items()","keys()","values()","get('a')","get('zz')","get('zz',9)","items()|list","keys()|list","values()|list","copy()","append(1)","pop()","index(1)","count(1)","update({})","bit_length()","is_integer()","as_integer_ratio()","real","imag","a","content","role","items","x","__class__","upper","hex()"]
    idx=["0","1","-1","99","'a'","'role'","'zz'","n","z","1:","::-1",":2","1:3","::2","-3:-1","5:1:-2","none:none","::0","'b':"]
    def expr(d):
        k=R.random()
        if d<=0 or k<0.22: return R.choice(atoms)
        if k<0.40: return expr(d-1)+R.choice(binops)+expr(d-1)
        if k<0.60:
            return "("+expr(d-1)+")|"+(R.choice(filters0) if R.random()<.5 else R.choice(filtersA))
        if k<0.68: return "("+expr(d-1)+") is "+R.choice(["","not "])+(R.choice(testsx) if R.random()<.6 else R.choice(testsA))
        if k<0.83: return "("+expr(d-1)+")."+R.choice(meths)
        if k<0.91: return "("+expr(d-1)+")["+R.choice(idx)+"]"
        if k<0.94: return expr(d-1)+" if "+expr(d-1)+R.choice([""," else "+expr(d-1)])
        if k<0.96: return R.choice(["not ","-","+"])+expr(d-1)
        if k<0.98: return "["+expr(d-1)+","+expr(d-1)+"]"
        return "{'k':"+expr(d-1)+"}"
    context = json.loads(CTX)
    print(json.dumps({"shared": "expr", "context": context}))
    for _ in range(count): emit("expr", "{{ "+expr(R.choice([1,1,2,2,3]))+" }}", context, "expr")


def statements(count):
    R=random.Random(7)
    CTX=json.dumps({"a":1,"b":"B<","c":[1,2,3],"ms":[{"r":"u","c":"x"},{"r":"a","c":"y"},{"r":"u","c":""}],"t":True,"tree":[{"n":"1","k":[{"n":"1.1","k":[]},{"n":"1.2","k":[{"n":"1.2.1","k":[]}]}]},{"n":"2","k":[]}],"pairs":[[1,2],[3,4]],"x":"ctx","y":"why"})
    names=["a","b","c","x","y","u","ns","loop","m","v"]
    def ex(d=1):
        k=R.random()
        if k<.35: return R.choice(names)
        if k<.5: return R.choice(["1","'s'","[1,2]","none","true","{}","2.5"])
        if k<.6: return R.choice(["loop.index","loop.first","loop.last","loop.length","loop.previtem","loop.nextitem","loop.revindex0","loop.depth","loop.changed(x)","loop.cycle('p','q')","loop.index0"])
        if k<.66: return R.choice(["ns.q","ns.z","caller()","caller(1)","varargs","kwargs","m()","m(1)","m(x=2)","m(1,2,3)","m2(y)","self.blk()","cy.next()","jo()","cy.current"])
        if d>0:
            k=R.random()
            if k<.3: return ex(d-1)+R.choice([" ~ "," + "," == "," and "," or "," in "])+ex(d-1)
            if k<.5: return ex(d-1)+"|"+R.choice(["length","upper","default('D')","string","list","e","first","join","tojson"])
            if k<.7: return ex(d-1)+" is "+R.choice(["defined","undefined","none","string","not defined"])
            if k<.85: return ex(d-1)+" if "+ex(d-1)+R.choice([" else "+ex(d-1),""])
            return "("+ex(d-1)+")"
        return R.choice(names)
    def ws(): return R.choice(["","","","-","+"]) 
    def tag(s): return "{%"+ws()+" "+s+" "+ws()+"%}"
    def text(): return R.choice(["","","T"," ","\n","  \n","\n  "," w ","\n\n","a\n  b","\t"])
    def var(): return "{{"+R.choice(["","","-"])+" "+ex()+" "+R.choice(["","","-"])+"}}"
    def target(): return R.choice(["x","y","u","v","a","x, y","(u, v)","ns.q","loop"] if R.random()<.97 else ["true","x.y.z","1"])
    def body(d,inloop=False):
        return "".join(stmt(d-1,inloop) for _ in range(R.randint(1,3)))
    def stmt(d,inloop=False):
        k=R.random()
        if d<=0 or k<.3: return text()+var()+text()
        if k<.36: return text()+R.choice(["{# c #}","{#- c -#}","{#+ c +#}","{# a\nb #}\n"])+text()
        if k<.40: return tag("set "+target()+" = "+R.choice([ex(),"1","namespace(q=1)","cycler('i','j')","[1,2]","1, 2"]))+text()
        if k<.45: return tag(R.choice(["set ns = namespace(q=0)","set ns.q = ns.q|default(0) + 1","set ns.q = "+ex(),"set cy = cycler(1,2)","set jo = joiner('|')"]))
        if k<.55:
            s=tag("if "+ex())+body(d,inloop)
            if R.random()<.3: s+=tag("elif "+ex())+body(d,inloop)
            if R.random()<.4: s+=tag("else")+body(d,inloop)
            return s+tag("endif")+text()
        if k<.70:
            it=R.choice(["c","ms","[]","tree","pairs","range(3)","'abc'","c|select","u",ex(),"{'k':1,'j':2}.items()","c[1:]"])
            tg=R.choice(["x","i","v","x, y","i"])
            s=tag("for "+tg+" in "+it+R.choice(["","",""," if "+ex()," if loop.first"," if x"," recursive"]))+body(d,True)
            if R.random()<.25: s+=tag("else")+body(d,inloop)
            return s+tag("endfor")+text()
        if k<.73 : return tag("for it in tree recursive")+R.choice(["{{it.n}}","{{ loop.depth }}","[{{ loop.index }}"])+body(d-1,True)+"{{ loop(it.k) }}"+tag("endfor")
        if k<.80: return tag("macro "+R.choice(["m","m","m2","_m"])+R.choice(["()","(x)","(x, y=2)","(x='d')","(y, x=y)","(caller)","(caller=none)","(a, b, kwargs)"]))+body(d)+tag("endmacro")+text()
        if k<.84: return tag("call"+R.choice(["","(z)","(z, q=1)"])+" "+R.choice(["m()","m(1)","m2(x)","m"]))+body(d)+tag("endcall")
        if k<.87: return tag("filter "+R.choice(["upper","upper|lower","replace('T','U')","indent(2)|trim","e","foo"]))+body(d,inloop)+tag("endfilter")
        if k<.90: return tag("set "+R.choice(["x","y","ns.q","u"])+R.choice([""," | upper"," | default(x)|trim"]))+body(d,inloop)+tag("endset")
        if k<.93: return tag("with "+R.choice(["","x=1","x=a, y=x","u=x","x, y = 1, 2"]))+body(d,inloop)+tag("endwith")
        if k<.945: return tag("autoescape "+R.choice(["true","false","a","none"]))+body(d,inloop)+tag("endautoescape")
        if k<.96: return tag("generation")+body(d)+tag("endgeneration")
        if k<.97: return tag("block "+R.choice(["blk","b2","b3 scoped","b4"]))+body(d)+tag("endblock")
        if k<.98: return tag("raw")+R.choice(["{{ x }}"," {% if %} ","\n"])+tag("endraw")
        return tag(R.choice(["break","continue"]) ) if inloop or R.random()<.1 else tag("print x, y")
    context = json.loads(CTX)
    print(json.dumps({"shared": "stmt", "context": context}))
    for _ in range(count): emit("stmt", body(R.choice([2,3])), context, "stmt")


def formats(n):
    cases = []
    R=random.Random(7)
    alpha="aAbBzZ09 _-.,'\"\\\n\t{}<>&%éÉßΣσςǆǅﬁİıŉ你🙂ー٣²Ⅷ½\u00a0\u2028\x1c\u0300ªºʰⅰⓐ:!;/?@()["
    def rs(k=8): return "".join(R.choice(alpha) for _ in range(R.randint(0,k)))
    nums=[0,1,-1,7,-12,255,1234567,10**20,-10**18,0.0,-0.0,1.5,-2.675,3.14159,1e-5,1e16,123456.789,1e300,0.1,2.5,1e22,5e-324,True,False,None]
    def spec():
        s=""
        if R.random()<.4: s+=R.choice(["","*","é","0"," "])+R.choice("<>^=")
        s+=R.choice(["","","+","-"," "])+R.choice(["","","#"])+R.choice(["","","0"])+R.choice(["","5","10","1"])+R.choice(["","",",","_"])+R.choice(["","",".2",".0",".10"])+R.choice(["","d","x","X","o","b","e","E","f","F","g","G","%","s","n","c","q"])
        return s
    def pct():
        return "%"+R.choice(["","-","+"," ","#","0","-0","+#"])+R.choice(["","5","12","*"])+R.choice(["","",".3",".0",".*"])+R.choice("dixXoeEfFgGsrac%dsfsrq")
    for _ in range(n):
        k=R.random()
        if k<.3:
            c={"v":R.choice(nums) if R.random()<.8 else rs(),"f":"{:"+spec()+"}"}
            t="{{ f.format(v) }}"
        elif k<.5:
            c={"v":R.choice(nums) if R.random()<.8 else rs(),"f":pct(),"w":R.choice([5,3])}
            t=R.choice(["{{ f % v }}","{{ f|format(v) }}","{{ f % (v,) }}","{{ f % (w,v) }}","{{ f % (w,2,v) }}"])
        elif k<.55:
            c={"d":{"a":1,"b":[1,{"c":"x"}]},"f":R.choice(["{0.a}","{0[a]}","{0[b][1][c]}","{x}","{}{}","{0}{}","{!r}","{0!s:>5}","{0!a}","{:{}}","{0:{1}}","{{}}","{","}","{0","{0!","{0!x}","{a.b}","{0.__class__}","{0[b].append}","{:{:{}}}","{ 0}","{0[}","{0[]}","{0.}","{-1}","{0:>{w}}",rs(12)])}
            t=R.choice(["{{ f.format(d, 5, w=9) }}","{{ f.format_map({'x':1,'a':d}) }}","{{ f.format(*[d,'>4']) }}"])
        elif k<.85:
            c={"s":rs(12),"u":rs(2),"w":rs(3)}
            m=R.choice(["upper()","lower()","title()","capitalize()","swapcase()","casefold()","strip()","strip(u)","lstrip(w)","rstrip(u)","split()","split(u)","split(none,2)","rsplit(none,1)","rsplit(u,1)","splitlines()","splitlines(true)","isalpha()","isdigit()","isnumeric()","isdecimal()","isalnum()","islower()","isupper()","istitle()","isspace()","isprintable()","isidentifier()","replace(u,w)","replace(u,w,2)","find(u)","rfind(u,1)","count(u)","partition(u)","rpartition(u)","startswith(u)","endswith(w,0,4)","zfill(10)","center(11,'é')","expandtabs(4)"])
            fl=R.choice(["title","upper","capitalize","wordcount","indent(2)","indent(3,true,true)","urlencode","e","striptags","tojson","tojson(ensure_ascii=true)","wordwrap(4)","wordwrap(3,false)","truncate(5,false,'…',0)","truncate(4,true,'')","trim","trim(u)","center(9)","int","float","list","reverse","length","string","pprint","urlize","forceescape","replace(u,w)","sort|join","unique|join","first","last","batch(3)|list","default('x',true)"])
            t=R.choice(["{{ [s.%s] }}"%m,"{{ [s|%s] }}"%fl,"{{ (s~w)|%s }}"%fl,"{{ s.%s }}"%m])
        elif k<.9:
            c={"v":R.choice([rs(6),"12","-5"," 7 ","1_0","0x1f","0b11","1e3","inf","nan","٣","1.5","abc","+3","--1","0o7","1__0","_1","9"*30])}
            t=R.choice(["{{ v|int }}","{{ v|int(0,16) }}","{{ v|int(7,0) }}","{{ v|float }}","{{ v|int(base=2) }}","{{ v|filesizeformat }}"])
        elif k<.95:
            def val(d):
                r=R.random()
                if d<=0 or r<.5: return R.choice([R.choice(nums),rs(30),"word "*R.randint(0,20)])
                if r<.75: return [val(d-1) for _ in range(R.randint(0,5))]
                return {rs(6)+str(i):val(d-1) for i in range(R.randint(0,4))}
            c={"v":val(3)}
            t=R.choice(["{{ v|pprint }}","{{ v }}","{{ v|tojson }}","{{ v|tojson(indent=2) }}","{{ v|tojson(indent=1,sort_keys=true,ensure_ascii=true) }}","{{ v|string|urlize }}","{{ v|string|wordwrap(20) }}","{{ v|length }}"])
        else:
            c={"v":R.choice(nums),"p":R.choice([0,1,2,-1,-2,3])}
            t=R.choice(["{{ v|round(p) }}","{{ v|round(p,'ceil') }}","{{ v|round(p,'floor') }}","{{ v|round }}","{{ v|int }}","{{ v|abs }}","{{ v|filesizeformat(true) }}","{{ v // 3 }} {{ v % 3 }} {{ v / 7 }}","{{ v % -2.5 }} {{ v // -0.5 }}","{{ v ** p }}","{{ v.real }} {{ v.hex() }}","{{ -v }} {{ +v }}"])
        cases.append((t,json.dumps(c)))
    for t, c in cases: emit("format", t, json.loads(c))


expressions(250)
statements(150)
formats(250)
