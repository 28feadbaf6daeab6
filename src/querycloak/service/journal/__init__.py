"""What is kept before it is acknowledged: numbered frames in files, snapshots, and a cipher for both."""

from querycloak.service.journal.cipher import Cipher
from querycloak.service.journal.journal import Journal
from querycloak.service.journal.snapshots import Snapshots

__all__ = ["Cipher", "Journal", "Snapshots"]
