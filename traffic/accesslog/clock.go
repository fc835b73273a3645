package accesslog

import "time"

// stampLen is the length of dd/Mon/yyyy:hh:mm:ss.
const stampLen = len("02/Jan/2006:15:04:05")

// clock reads timestamps and remembers the last day, since lines of one day follow each other.
type clock struct {
	day      [11]byte // dd/Mon/yyyy
	midnight int64    // Unix seconds of that day's start in UTC
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
	if n < len(b) && b[n] == '.' {
		scale := int64(time.Second)
		from := n + 1
		for n++; n < len(b) && isDigit(b[n]); n++ {
			scale /= 10
			at += int64(b[n]-'0') * scale
		}
		if n == from {
			return 0, 0, false
		}
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
