package traffic

// BadFile is an input of which too much did not parse (TR-3).
type BadFile struct {
	Input      string `json:"input"` // base name of the file, "-" for standard input
	Read       int64  `json:"read"`
	Unparsable int64  `json:"unparsable"`
}

// TooMany tells whether so much of what was read could not be parsed that it must be said loudly: more
// than one in 20 of at least 100 records (TR-3).
func TooMany(read, unparsable int64) bool { return read >= 100 && unparsable*20 > read }

// EndInput closes the account of one input: what was counted since the last call belongs to it. Among
// many good files a bad one would otherwise disappear in the sum. An input without a name was none.
func (s *Skips) EndInput(name string) {
	bad := s.Unparsable - s.ended.Unparsable
	read := s.Parsed + s.Unparsable - s.ended.Read
	s.ended = BadFile{Read: s.Parsed + s.Unparsable, Unparsable: s.Unparsable}
	if name == "" || !TooMany(read, bad) {
		return
	}
	s.BadFiles++
	if len(s.Bad) < MaxFirst {
		s.Bad = append(s.Bad, BadFile{name, read, bad})
	}
}
