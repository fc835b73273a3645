package accesslog

import "time"

// stampLen is the length of dd/Mon/yyyy:hh:mm:ss.
const stampLen = len("02/Jan/2006:15:04:05")

// clock reads timestamps and remembers the last day, since lines of one day follow each other.
type clock struct {
	day      [11]byte // dd/Mon/yyyy
	midnight int64    // Unix seconds of that day's start in UTC
	isoDay   [10]byte // yyyy-mm-dd
	isoStart int64    // Unix seconds of that day's start in UTC
	unit     int64    // how finely the last time is given, in nanoseconds
}

// parse reads dd/Mon/yyyy:hh:mm:ss[.fraction][ +hhmm] at the start of b: Unix nanoseconds and how many
// bytes it took. Without an offset the time is UTC. A leap second is the first second of the next
// minute, as POSIX has it.
func (c *clock) parse(b []byte) (nano int64, n int, ok bool) {
	if len(b) < stampLen || b[11] != ':' || b[14] != ':' || b[17] != ':' || !c.date(b[:11]) {
		return 0, 0, false
	}
	hour, minute, second := two(b[12:]), two(b[15:]), two(b[18:])
	if hour > 23 || minute > 59 || second > 60 {
		return 0, 0, false
	}
	at := (c.midnight + int64(hour)*3600 + int64(minute)*60 + int64(second)) * int64(time.Second)
	n = stampLen
	c.unit = int64(time.Second)
	if n < len(b) && b[n] == '.' {
		part, digits := fraction(b[n+1:])
		if digits == 0 {
			return 0, 0, false
		}
		at += part
		n += 1 + digits
		c.unit = unitOf(digits)
	}
	if n < len(b) && b[n] == ' ' {
		shift, ok := offset(b[n+1:])
		if !ok {
			return 0, 0, false
		}
		at -= shift
		n += len(" +0000")
	}
	return at, n, true
}

// fraction reads the digits behind a decimal point: nanoseconds, and how many digits there are.
func fraction(b []byte) (nano int64, digits int) {
	scale := int64(time.Second)
	for digits < len(b) && isDigit(b[digits]) {
		scale /= 10
		nano += int64(b[digits]-'0') * scale
		digits++
	}
	return nano, digits
}

// unitOf is how finely so many digits behind the point tell a time, in nanoseconds.
func unitOf(digits int) int64 {
	unit := int64(time.Second)
	for ; digits > 0 && unit > 1; digits-- {
		unit /= 10
	}
	return unit
}

// iso reads yyyy-mm-dd or yyyy/mm/dd, a T or a space, hh:mm:ss, a fraction behind a point or a comma,
// and a zone: Z, +hh:mm, +hhmm or +hh. Without a zone the time is UTC. It gives Unix nanoseconds and how
// many bytes it took.
func (c *clock) iso(b []byte) (nano int64, n int, ok bool) {
	n = len("2006-01-02T15:04:05")
	if len(b) < n || b[10] != 'T' && b[10] != ' ' && b[10] != 't' && b[10] != '\t' || !c.isoDate(b[:10]) {
		return 0, 0, false
	}
	at, ok := c.ofDay(b[11:n])
	if !ok {
		return 0, 0, false
	}
	at += c.isoStart * int64(time.Second)
	if n < len(b) && (b[n] == '.' || b[n] == ',') {
		part, digits := fraction(b[n+1:])
		if digits > 0 {
			at += part
			n += 1 + digits
			c.unit = unitOf(digits)
		}
	}
	shift, size := zone(b[n:])
	return at - shift, n + size, true
}

// ofDay reads hh:mm:ss, in nanoseconds.
func (c *clock) ofDay(b []byte) (int64, bool) {
	if len(b) < 8 || b[2] != ':' || b[5] != ':' {
		return 0, false
	}
	hour, minute, second := two(b), two(b[3:]), two(b[6:])
	if hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	c.unit = int64(time.Second)
	return (int64(hour)*3600 + int64(minute)*60 + int64(second)) * int64(time.Second), true
}

// isoDate makes isoStart that of yyyy-mm-dd; false when there is no such day between 1970 and 2261.
func (c *clock) isoDate(b []byte) bool {
	if string(b) == string(c.isoDay[:]) {
		return true
	}
	century, year, month, day := two(b), two(b[2:]), two(b[5:]), two(b[8:])
	if b[4] != b[7] || b[4] != '-' && b[4] != '/' || century > 99 || year > 99 || month < 1 || month > 12 || day > 31 {
		return false
	}
	full := int(century)*100 + int(year)
	at := time.Date(full, time.Month(month), int(day), 0, 0, 0, 0, time.UTC)
	if full < 1970 || full > 2261 || at.Day() != int(day) {
		return false
	}
	copy(c.isoDay[:], b)
	c.isoStart = at.Unix()
	return true
}

// zone reads Z, +hh:mm, +hhmm or +hh, with or without a space before it: nanoseconds east of UTC and how
// many bytes it took, 0 when there is none.
func zone(b []byte) (shift int64, size int) {
	if len(b) > 1 && b[0] == ' ' && (b[1] == '+' || b[1] == '-') {
		if shift, size = zone(b[1:]); size > 0 {
			size++
		}
		return shift, size
	}
	if len(b) > 0 && (b[0] == 'Z' || b[0] == 'z') {
		return 0, 1
	}
	if len(b) < 3 || b[0] != '+' && b[0] != '-' || two(b[1:]) > 23 {
		return 0, 0
	}
	shift, size = int64(two(b[1:]))*int64(time.Hour), 3
	minutes := b[3:]
	if len(minutes) > 0 && minutes[0] == ':' {
		minutes = minutes[1:]
	}
	if len(minutes) >= 2 && two(minutes) <= 59 {
		shift += int64(two(minutes)) * int64(time.Minute)
		size = len(b) - len(minutes) + 2
	}
	if b[0] == '-' {
		shift = -shift
	}
	return shift, size
}

// epoch reads a time since 1970 as a decimal number of the given unit in nanoseconds. With unit 0 the
// size of the number tells: seconds, milliseconds, microseconds or nanoseconds.
func (c *clock) epoch(b []byte, unit int64) (nano int64, ok bool) {
	whole := digitsOf(b)
	if unit == 0 {
		switch {
		case whole <= 11:
			unit = int64(time.Second)
		case whole <= 14:
			unit = int64(time.Millisecond)
		case whole <= 17:
			unit = int64(time.Microsecond)
		default:
			unit = 1
		}
	}
	c.unit = unit
	if whole < len(b) { // numbers are written without the zeros at their end, so that digits tell nothing
		c.unit = 1
	}
	nano, ok = decimal(b, unit)
	return nano, ok && nano > 0
}

func digitsOf(b []byte) int {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

// decimal reads a number without a sign, times unit, without what is left behind the point then. It is
// false for anything else and for what does not fit.
func decimal(b []byte, unit int64) (int64, bool) {
	whole := digitsOf(b)
	if whole == 0 || whole > 19 {
		return 0, false
	}
	var n int64
	for _, c := range b[:whole] {
		d := int64(c - '0')
		if n > (1<<63-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if n > (1<<63-1)/unit-1 {
		return 0, false
	}
	n *= unit
	b = b[whole:]
	if len(b) == 0 {
		return n, true
	}
	if b[0] == '.' {
		for b = b[1:]; len(b) > 0 && isDigit(b[0]); b = b[1:] {
			// unit is a power of ten, except when it is a minute or an hour, which keep their rest
			n += int64(b[0]-'0') * unit / 10
			unit /= 10
		}
	}
	return n, len(b) == 0
}

// offset reads +hhmm or -hhmm, in nanoseconds east of UTC.
func offset(b []byte) (int64, bool) {
	if len(b) < 5 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	hour, minute := two(b[1:]), two(b[3:])
	if hour > 99 || minute > 99 {
		return 0, false
	}
	shift := (int64(hour)*60 + int64(minute)) * int64(time.Minute)
	if b[0] == '-' {
		shift = -shift
	}
	return shift, true
}

// date makes midnight that of dd/Mon/yyyy; false when there is no such day between 1970 and 2261,
// where nanoseconds fit.
func (c *clock) date(b []byte) bool {
	if string(b) == string(c.day[:]) {
		return true
	}
	day, month, century, year := two(b), month(b[3:6]), two(b[7:]), two(b[9:])
	if b[2] != '/' || b[6] != '/' || day > 31 || month == 0 || century > 99 || year > 99 {
		return false
	}
	full := int(century)*100 + int(year)
	at := time.Date(full, month, int(day), 0, 0, 0, 0, time.UTC)
	if full < 1970 || full > 2261 || at.Day() != int(day) {
		return false
	}
	copy(c.day[:], b)
	c.midnight = at.Unix()
	return true
}

// two reads two digits; over 99 when they are none.
func two(b []byte) uint {
	hi, lo := b[0]-'0', b[1]-'0'
	if hi > 9 || lo > 9 {
		return 1000
	}
	return uint(hi)*10 + uint(lo)
}

// month knows the English abbreviations, which log formats use in every locale; 0 for anything else.
func month(b []byte) time.Month {
	switch string(b) {
	case "Jan":
		return time.January
	case "Feb":
		return time.February
	case "Mar":
		return time.March
	case "Apr":
		return time.April
	case "May":
		return time.May
	case "Jun":
		return time.June
	case "Jul":
		return time.July
	case "Aug":
		return time.August
	case "Sep":
		return time.September
	case "Oct":
		return time.October
	case "Nov":
		return time.November
	case "Dec":
		return time.December
	}
	return 0
}
