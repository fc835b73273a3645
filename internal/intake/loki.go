package intake

import (
	"context"
	"io"

	"seatrial/fault"
	"seatrial/traffic/input"
	"seatrial/traffic/loki"
)

// lines turns the entries that a log server gives into the lines of a file, one for each.
type lines struct {
	reader *loki.Reader
	line   []byte
	rest   []byte // of line: not read yet
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		if !l.reader.Next() {
			if err := l.reader.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		l.line = append(l.line[:0], l.reader.Bytes()...)
		if problem := l.reader.Fault(); problem != "" {
			l.line = append(append(l.line[:0], "! "...), problem...) // no access log's: it is counted as lost
		}
		for i, c := range l.line {
			if c == '\n' { // an entry is one record, however many lines it has
				l.line[i] = ' '
			}
		}
		l.line = append(l.line, '\n')
		l.rest = l.line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// ask gives what a log server holds as an input.
func ask(ctx context.Context, config loki.Config) (*input.Set, *loki.Reader, error) {
	reader, err := loki.New(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	set, err := input.Open([]string{"-"}, &lines{reader: reader}, ".")
	return set, reader, err
}

// answered tells what ended the reading of a log server better than the input can: its own error, or
// that it has nothing.
func answered(reader *loki.Reader, err error) error {
	switch {
	case reader == nil:
		return err
	case reader.Err() != nil:
		return reader.Err()
	case reader.Number() == 0:
		return fault.New(fault.TRF002, "%s has no entry for the query in the range that was asked for", reader.Input()).
			WithNext("Try the query with logcli, and widen the range.")
	}
	return err
}
