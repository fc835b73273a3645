package manifest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"seatrial/fault"
)

// position is a place in the manifest, or the flag that stands in its stead. The zero position is
// no place at all.
type position struct {
	line, column int
	flag         string
}

// source is the manifest's text, kept so that a problem can show the line it stands on.
type source struct {
	name string // what people know the file by, e.g. seatrial.yaml
	text string
}

// problem makes an error that points at a place: the place is in the sentence, the line with a
// caret is in the detail. A value that a flag gave is blamed on the flag; a value of the wrong form
// is then a usage error.
func (s source) problem(code fault.Code, at position, format string, args ...any) *fault.Error {
	text := fmt.Sprintf(format, args...)
	switch {
	case at.flag != "":
		if code == fault.MAN003 || code == fault.MAN004 {
			code = fault.CLI001
		}
		return fault.New(code, "%s: %s", at.flag, text)
	case at.line == 0:
		return fault.New(code, "%s: %s", s.name, text)
	}
	return fault.New(code, "%s:%d:%d: %s", s.name, at.line, at.column, text).WithDetail(s.excerpt(at))
}

// maxExcerpt is how many characters of a source line an excerpt shows.
const maxExcerpt = 120

// excerpt shows the line with a caret below the column.
func (s source) excerpt(at position) string {
	line := []rune(s.lineText(at.line))
	column := min(max(at.column-1, 0), len(line))
	cut := 0
	if column > maxExcerpt*3/4 {
		cut = column - maxExcerpt/2
	}
	shown := line[cut:min(len(line), cut+maxExcerpt)]
	prefix := fmt.Sprintf("%4d | ", at.line)
	pad := strings.Map(keepTabs, string(shown[:min(column-cut, len(shown))]))
	return prefix + strings.Map(printable, string(shown)) + "\n" + strings.Repeat(" ", len(prefix)) + pad + "^"
}

// keepTabs turns a line's beginning into blanks of the same width on a terminal.
func keepTabs(r rune) rune {
	if r == '\t' {
		return r
	}
	return ' '
}

// printable keeps control characters of a hostile manifest away from the terminal.
func printable(r rune) rune {
	if r != '\t' && (r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == utf8.RuneError) {
		return '?'
	}
	return r
}

// lineText gives line n (from 1) without its line end.
func (s source) lineText(n int) string {
	rest := s.text
	for ; n > 1; n-- {
		i := strings.IndexByte(rest, '\n')
		if i < 0 {
			return ""
		}
		rest = rest[i+1:]
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSuffix(line, "\r")
}
