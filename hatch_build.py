"""Puts the templates into the wheel as modules too: to compile them takes a while."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledTemplates(BuildHookInterface[Any]):
    """The build hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles them; an editable install reads the templates alone."""
        sys.path.insert(0, self.root)
        from scaffold.rendering import compile_templates, compiled_dir

        compiled = compiled_dir()
        if version == "editable" or not compiled:
            return
        # The wheel is written later, from what is there then.
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)
        compile_templates(folder)
        build_data["force_include"][folder] = f"scaffold/templates/{compiled.name}"
