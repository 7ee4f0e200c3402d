"""The forms of names that Kubernetes accepts, without their lengths.

Source: k8s.io/apimachinery@v0.35.4 pkg/util/validation/validation.go. A leaf: rendering makes names of these forms,
checks hold other people's against them.
"""

from __future__ import annotations

import re
from typing import Final

#: A DNS label (RFC 1123); `LABEL_1035` starts with a letter.
LABEL: Final = re.compile("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
LABEL_1035: Final = re.compile("[a-z](?:[-a-z0-9]*[a-z0-9])?")
#: A DNS name: labels between dots.
SUBDOMAIN: Final = re.compile(rf"{LABEL.pattern}(?:\.{LABEL.pattern})*")
#: A label's value, or the part of its key behind the slash.
QUALIFIED: Final = re.compile("[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
