from __future__ import annotations

import pytest
from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from blueprint.check.cel_library import extension

ENV = cel.NewEnv(
    variables={"self": cel.Type.DYN},
    extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional(), extension()],
)

# The examples of the doc comments in k8s.io/apiserver@v0.35.4 pkg/cel/library, and of its tests.
TRUE = """
quantity('1Gi').isGreaterThan(quantity('1G'))
quantity('50k').add(20) == quantity('50020')
quantity('50k').sub(quantity('20k')).sub(20000) == quantity('10k')
quantity('50000000G').isInteger()
!quantity('50m').isInteger()
!quantity('9999999999999999999999999999999999999G').isInteger()
quantity('50000k').asInteger() == 50000000
quantity('100.1234').asApproximateFloat() == 100.1234
quantity('200M').compareTo(quantity('0.2G')) == 0
sign(quantity('50m')) == 1 && sign(quantity('-1')) == -1 && sign(quantity('0')) == 0
isQuantity('1.3Gi') && isQuantity('20e') == false && !isQuantity('200K') && !isQuantity('Three')
isURL('https://user:pass@example.com:80/path?query=val#fragment') && isURL('/absolute-path') && !isURL('https://a:b:c/')
!isURL('../relative-path')
url('https://example.com:80/').getHost() == 'example.com:80' && url('/path').getHost() == ''
url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]/').getPort() == ''
url('https://example.com:80/').getPort() == '80'
url('https://example.com/path with spaces'.replace(' ', '%20')).getEscapedPath() == '/path%20with%20spaces'
url('https://example.com/path?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}
url('/path').getScheme() == '' && url('https://example.com/').getScheme() == 'https'
isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP(':::1') && !isIP('::ffff:1.2.3.4')
ip.isCanonical('127.0.0.1') && ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD')
ip('127.0.0.1').family() == 4 && ip('::1').family() == 6
ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified() && !ip('::1').isUnspecified()
ip('127.0.0.1').isLoopback() && ip('::1').isLoopback() && !ip('192.168.0.1').isLoopback()
ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()
ip('ff02::1').isLinkLocalMulticast()
ip('169.254.169.254').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast() && !ip('fd80::1').isLinkLocalUnicast()
ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast() && !ip('ff00::1').isGlobalUnicast()
string(ip('::1')) == '::1' && string(cidr('10.0.0.0/8')) == '10.0.0.0/8' && string(7) == '7'
isCIDR('192.168.0.0/16') && isCIDR('::1/128') && !isCIDR('192.168.0.0/33')
cidr('192.168.0.0/24').containsIP(ip('192.168.0.1')) && !cidr('192.168.0.0/24').containsIP('192.168.1.1')
cidr('192.168.0.0/16').containsCIDR(cidr('192.168.10.0/24')) && !cidr('192.168.1.0/24').containsCIDR('192.168.2.0/24')
cidr('192.168.0.0/16').containsCIDR('192.168.0.0/8') == false
cidr('192.168.0.1/24').ip() == ip('192.168.0.1') && cidr('192.168.0.0/24').prefixLength() == 24
[1, 3].sum() == 4 && [1.0, 3.0].sum() == 4.0 && self.none.sum() == 0
'a1b22'.indexOf('b') == 2
'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''
'123 abc 456'.findAll('[0-9]+') == ['123', '456'] && '123 abc 456'.findAll('[0-9]+', 1) == ['123']
'123 abc 456'.findAll('[0-9]+', 0) == []
sets.contains([1, 2], [2]) && !sets.contains([1], [1, 2])
sets.equivalent([1], [1, 1]) && sets.intersects([1], [1, 2])
""".strip().splitlines()

# Right as well, but a server estimates their cost, of list literals among others, beyond what a CRD may ask.
COSTLY = """
cidr('192.168.0.0/24') == cidr('192.168.0.0/24').masked() && cidr('192.168.0.1/24') != cidr('192.168.0.1/24').masked()
[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted()
[1, 3].min() == 1 && self.list.max() == 3 && ['a', 'b'].max() == 'b'
[1, 2, 2, 3].indexOf(2) == 1 && ['a'].indexOf('b') == -1 && [1, 2, 2, 3].lastIndexOf(2) == 2
""".strip().splitlines()

ERRORS = """
quantity('200K')
quantity('1.5').asInteger()
url('../relative')
ip('nowhere')
cidr('10.0.0.0')
[].min()
cidr('10.0.0.0/8').containsIP('nowhere')
""".strip().splitlines()


@pytest.mark.parametrize("text", TRUE + COSTLY)
def test_examples_of_the_library_hold(text: str) -> None:
    result = ENV.compile(text).eval(data={"self": {"list": [3, 1], "none": []}})
    assert result.value() is True, result


@pytest.mark.parametrize("text", ERRORS)
def test_what_the_library_refuses_is_an_error(text: str) -> None:
    assert ENV.compile(text).eval(data={"self": {}}).type() == cel.Type.ERROR


def test_what_is_not_here_does_not_compile() -> None:
    for text in ("semver('1.0.0')", "format.dns1123Label()", "[1].all(i, v, v > 0)"):
        with pytest.raises(RuntimeError):
            ENV.compile(text)
