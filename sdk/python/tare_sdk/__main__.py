"""python -m tare_sdk"""

from .program import main

main()
