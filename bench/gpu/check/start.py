"""What gpu_check starts, by the machine's own Python."""

import os
import sys

if sys.version_info < (3, 10):
    sys.exit("[gpu_check] this is Python %d.%d, expected 3.10 or newer" % sys.version_info[:2])

bundle = sys.argv[1]
sys.path.insert(0, os.path.join(bundle, "lib"))
sys.dont_write_bytecode = True

from gpu.check.__main__ import main  # noqa: E402

sys.exit(main([*sys.argv[2:], "--bundle", bundle]))
