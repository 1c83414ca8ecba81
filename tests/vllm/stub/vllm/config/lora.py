from typing import Literal

MaxLoRARanks = Literal[1, 8, 16, 32]
