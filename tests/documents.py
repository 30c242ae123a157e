# SPDX-License-Identifier: Apache-2.0
"""The links between the documents."""
import re


def links(folder):
    """The relative links of the documents of a folder and of its doc/: pairs of the document and
    what it names.
    """
    return {
        (path, target)
        for path in (*folder.glob("*.md"), *(folder / "doc").glob("*.md"))
        for target in re.findall(r"\]\(([^)#\s]+)\)", path.read_text())
        if "://" not in target
    }


def links_lead_to_files(folder):
    """Fails when a link leads nowhere; returns how many there are."""
    found = links(folder)
    assert [(p.name, target) for p, target in found if not (p.parent / target).exists()] == []
    return len(found)
