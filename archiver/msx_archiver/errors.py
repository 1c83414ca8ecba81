"""Errors of this package. Every message is one sentence that names the file and what to do.

ArchiveError                the file is not a model archive that can be used
├── HostileArchiveError     it holds a member that no model needs; nothing of it was written
├── CheckError              a MindIR does not answer as its checkpoint, or cannot be compared with it
└── PackError               what was asked to be packed cannot be packed; nothing was written
"""


class ArchiveError(Exception):
    """The archive cannot be read, unpacked or used."""


class HostileArchiveError(ArchiveError):
    """The archive was refused, before a byte of it was written, because of the member that the message names."""


class CheckError(ArchiveError):
    """A MindIR and a checkpoint cannot be compared, or differ."""


class PackError(ArchiveError):
    """The archive cannot be made from these options."""
