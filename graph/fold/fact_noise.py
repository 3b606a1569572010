"""What looks like facts and holds none: rows of tables, the output of machines, and common words in capitals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from graph.core.language import STOP_WORDS

# A row of Markdown or of a spreadsheet.
_ROW: Final = re.compile(
    r"^\s{0,8}\|[^|\n]{0,400}\||^[^|\n]{1,200}\s\|\s[^|\n]{1,200}\s\|\s|^[^\t\n]{1,200}\t[^\t\n]{0,200}\t"
)
# Rows only beside others like them, as people write so, too: columns set apart by spaces, values between commas.
_COLUMNS: Final = re.compile(r"[^\s.!?:,]\s{2,40}(?=\S)")
_VALUES: Final = re.compile(r",(?![\s,]|[0-9]{3}(?![0-9]))")
_LEAST_GAPS: Final = 2
_MOST_CHARS: Final = 1_000
_PIPES: Final = re.compile(r"^\s{0,8}\|")
_LEVEL: Final = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE)"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
_MACHINE: Final = re.compile(
    rf"^\s{{0,8}}\[?[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}[T ]{_CLOCK}"
    rf"|^\s{{0,8}}\[?{_CLOCK}(?:[.,][0-9]{{1,9}}\]?\s|\]|\s\[|\s{{1,4}}{_LEVEL}\b)"
    rf"|^\s{{0,8}}[\[<]?{_LEVEL}[\]>:]\s|^\s{{0,8}}{_LEVEL}\s{{2}}"
    rf"|^(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s{{1,2}}[0-9]{{1,2}}\s{_CLOCK}\s"
    rf"|^[IWEF][0-9]{{4}}\s{_CLOCK}"
    r"|^[0-9]{1,3}(?:\.[0-9]{1,3}){3}\s-\s"
    # a status of a pod, or a row of measures behind a name
    r"|\s[0-9]{1,3}/[0-9]{1,3}\s{1,8}(?:Running|Pending|Completed|Error|Terminating|Init|Crash|Image|OOM|Evicted)"
    r"|^\s{0,8}\S{1,80}(?:\s{1,8}[0-9][0-9.]{0,8}(?:[a-zA-Z]{1,2}|%)?){3,20}\s{0,8}$"
    # frames of a stack
    r"|^\s{1,16}at\s[\w.$<>/]{1,200}\(|^\s{0,16}File\s\"[^\"\n]{1,200}\",\sline\s[0-9]|^Traceback\s\(most|^Caused\sby:\s"
    r"|^goroutine\s[0-9]|^\s{0,16}\S{1,200}\.go:[0-9]{1,6}\s\+0x|\(0x[0-9a-f]{2,16}[,)]|^Exception\sin\sthread"
    r"|^Msg\s[0-9]{1,6},\sLevel\s[0-9]"
)
# A call alone in its line, within a stack trace.
_CALL: Final = re.compile(r"^\s{0,8}[\w.*/]{1,200}(?:\([\w*.]{1,80}\)[\w.]{1,200})?\([^()\n]{0,200}\)$")
_LOG_PAIRS: Final = re.compile(r"(?:^|\s)(?:level|lvl|ts|time|msg|caller|logger|severity)=\S")
_LEAST_PAIRS: Final = 2
_HEADINGS: Final = re.compile(r"^\s{0,8}[A-Z][A-Z()%_-]{1,24}(?:\s{1,40}[A-Z][A-Z()%_-]{1,24}){2,12}\s{0,8}$")

_COMMON_LIST: Final = """
dr mr mrs ms prof st select join left right inner outer full cross null order group having limit offset union all
distinct insert values update set delete create table alter drop index view primary key foreign references begin commit
rollback exists between like case else end asc desc count sum avg min max trace debug info notice warn warning error
critical fatal severe name ready status restarts age type node namespace cluster-ip port ports state level line total
date time id yes running pending completed terminating active failed success done true false none nan utc gmt kst est
edt pst pdt cet cest bst am pm api apis url urls uri http https html css json xml yaml csv tsv pdf sql db ui ux os pc
cpu gpu ram ssd hdd usb faq todo tbd fyi asap eta eod diy ceo cto cfo hr pr ai ml llm qa vpn dns ip tcp udp ssh ssl tls
sms pos qr gps tv get post put patch head options those never always maybe perhaps however therefore because since after
before once until while here now later today tomorrow yesterday tonight monday tuesday wednesday thursday friday
saturday sunday shall may might must don make explain check use try keep take go see look note note: add remove change
only even still yet both each every many much more most less least few other another first second third next last new
old good bad great sure thanks thank hi hello hey dear sorry well off up down over under out through per via ask call
email send contact meet write read run start stop open close book buy pay move switch deploy restart verify roll fix
submit finalize schedule wash sort merge push pull test build install think love prefer wait reminder back idle option
step page part section chapter item example answer question summary changed decided decision rule rules
"""
_COMMON: Final = STOP_WORDS.union(_COMMON_LIST.split())


def machine_lines(lines: Sequence[str]) -> bytearray:
    """Returns a byte for each line, 1 for a row of a table and what a program printed: a log, a listing, a stack."""
    marks = bytearray(map(_is_machine_line, lines))
    for gap in (_COLUMNS, _VALUES):
        counts = [len(gap.findall(line.strip()[:_MOST_CHARS])) for line in lines]
        for index, count in enumerate(counts):
            beside = counts[max(0, index - 1) : index] + counts[index + 1 : index + 2]
            is_like = count in beside if gap is _VALUES else max(beside, default=0) >= _LEAST_GAPS
            if count >= _LEAST_GAPS and is_like:
                marks[index] = 1
    for index, line in enumerate(lines):
        if not marks[index] and _CALL.search(line) and any(marks[max(0, index - 1) : index + 2]):
            marks[index] = 1
    return marks


def _is_machine_line(line: str) -> bool:
    is_marked = any(pattern.search(line) for pattern in (_ROW, _MACHINE, _HEADINGS))
    return is_marked or len(_LOG_PAIRS.findall(line)) >= _LEAST_PAIRS


def is_table_row(line: str) -> bool:
    """Returns True for a row with pipes, which people write, too."""
    return bool(_PIPES.search(line))


def common_chars(name: str) -> int:
    """Returns how long a run of words that are no name is at the start: SQL, abbreviations, sentence starts."""
    start = 0
    for word in name.split(" "):
        if word.casefold() not in _COMMON:
            break
        start += len(word) + 1
    return min(start, len(name))
