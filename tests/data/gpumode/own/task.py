"""Types that GPU MODE's references import; here nothing depends on them."""

from typing import Any

input_t = Any
output_t = Any
