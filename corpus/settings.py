"""Settings: what the environment says, with the defaults of the project.

Every setting is an environment variable `BRAIN_<NAME>`; flags of a command win over it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


def _user_cache() -> Path:
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "research-brain"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "research-brain"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "research-brain" / "cache"
    return Path.home() / ".cache" / "research-brain"


class Settings(BaseSettings):
    """The environment of one process. Paths are made absolute when they are read."""

    model_config = SettingsConfigDict(env_prefix="BRAIN_", extra="ignore", env_ignore_empty=True)

    home: Path = Field(
        default=Path(".brain"), description="Folder of all state: database, store, word index, caches, logs."
    )
    db: str = Field(default="embedded:", description="Database: embedded:DIR or a libpq URL.")
    seeds: Path = Field(default=Path("seeds"), description="Folder of the seed files.")
    cache: Path = Field(
        default_factory=_user_cache, description="Folder of the encoders' weights, shared between checkouts."
    )
    encoder: str = Field(
        default="all-mpnet-base-v2", description="Encoder that `brain init` registers: a name, a directory, or hashing."
    )
    store: str = Field(
        default="", description="Store of full texts: a folder or an fsspec URL; BRAIN_HOME/store by default."
    )
    contact_email: str = Field(default="", description="Your address in the User-Agent; open sources ask for it.")
    sources_base_url: str = Field(default="", description="Replays every request of every source below this address.")
    extract_timeout_s: float = Field(
        default=120.0, gt=0, description="Seconds that the extraction of one file may take."
    )
    extract_children: int = Field(
        default=0, ge=0, description="Child processes of the extraction; 0 means one a core, at most 4."
    )
    log_level: str = Field(default="info", description="debug, info, warning or error.")

    @property
    def home_dir(self) -> Path:
        """BRAIN_HOME as an absolute path; not created."""
        return self.home.expanduser().absolute()

    @property
    def store_url(self) -> str:
        """Where full texts are kept."""
        return self.store or str(self.home_dir / "store")

    @property
    def cache_dir(self) -> Path:
        """BRAIN_CACHE as an absolute path; not created."""
        return self.cache.expanduser().absolute()

    @property
    def seeds_dir(self) -> Path:
        """BRAIN_SEEDS as an absolute path; not created."""
        return self.seeds.expanduser().absolute()
