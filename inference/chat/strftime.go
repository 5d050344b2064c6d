package chat

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats like C's in the C locale. Directives it does not know stay as they are.
func strftime(t time.Time, format string) string {
	layouts := map[byte]string{
		'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'B': "January",
		'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'j': "002", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
		'Z': "MST", 'z': "-0700", 'e': "_2",
	}
	short := map[byte]string{'d': "2", 'm': "1", 'I': "3", 'M': "4", 'S': "5"}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; {
		case c == '%':
			b.WriteByte('%')
		case c == '-' && i+1 < len(format) && format[i+1] == 'H':
			i++
			fmt.Fprint(&b, t.Hour())
		case c == '-' && i+1 < len(format) && short[format[i+1]] != "":
			i++
			b.WriteString(t.Format(short[format[i]]))
		case layouts[c] != "":
			b.WriteString(t.Format(layouts[c]))
		default:
			b.WriteByte('%')
			b.WriteByte(c)
		}
	}
	return b.String()
}
