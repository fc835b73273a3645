package loki

import "time"

// instant reads a time of RFC 3339 as nanoseconds since 1970, without allocating; false where it is
// none, or outside the years that fit.
func instant(b []byte) (int64, bool) {
	if len(b) < len("2006-01-02T15:04:05Z") || b[4] != '-' || b[7] != '-' || b[10]|0x20 != 't' && b[10] != ' ' ||
		b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	year, ok1 := number(b[0:4])
	month, ok2 := number(b[5:7])
	day, ok3 := number(b[8:10])
	hour, ok4 := number(b[11:13])
	minute, ok5 := number(b[14:16])
	second, ok6 := number(b[17:19])
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || year < 1678 || year > 2261 || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if date := t.Add(-time.Second * time.Duration(second)); date.Day() != day || date.Month() != time.Month(month) {
		return 0, false // the 31st of February
	}
	rest := b[19:]
	var fraction int64
	if rest[0] == '.' || rest[0] == ',' {
		unit := int64(time.Second)
		for rest = rest[1:]; len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9'; rest = rest[1:] {
			unit /= 10
			fraction += unit * int64(rest[0]-'0')
		}
	}
	shift, ok := zone(rest)
	return t.UnixNano() + fraction - shift, ok
}

// zone reads "Z", "+01:00" or "+0100" as nanoseconds east of Greenwich.
func zone(b []byte) (int64, bool) {
	if len(b) == 1 && b[0]|0x20 == 'z' {
		return 0, true
	}
	if len(b) == 6 && b[3] == ':' {
		b = append(append(make([]byte, 0, 5), b[:3]...), b[4:]...)
	}
	if len(b) != 5 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	hours, ok1 := number(b[1:3])
	minutes, ok2 := number(b[3:5])
	if !ok1 || !ok2 || hours > 23 || minutes > 59 {
		return 0, false
	}
	shift := int64(time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
	if b[0] == '-' {
		return -shift, true
	}
	return shift, true
}

func number(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
