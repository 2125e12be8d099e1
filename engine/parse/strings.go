package parse

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes are the characters that may follow a backslash, besides u.
var escapes = map[byte]byte{'"': '"', '\\': '\\', 'n': '\n', 't': '\t', 'r': '\r'}

// scanString reads a string literal, which ends in its line. Escapes are
// checked here and decoded by unquote.
func (l *lexer) scanString() tokenKind {
	for at := l.at + 1; at < len(l.src); {
		switch c := l.src[at]; {
		case c == '"':
			l.at = at + 1
			return tokenString
		case c == '\n':
			return l.openString(at)
		case isControl(rune(c)) && !strings.HasPrefix(l.src[at:], "\r\n"):
			return l.badInString(at, at+1, `write \t, \n, \r or \u with four hex digits`,
				"a control character stands in a string")
		case c == '\\':
			size := escapeLength(l.src[at:])
			if size == 0 {
				return l.badEscape(at)
			}
			at += size
		default:
			at++
		}
	}
	return l.openString(len(l.src))
}

func (l *lexer) openString(end int) tokenKind {
	for end > l.at && l.src[end-1] == '\r' {
		end--
	}
	return l.fault(end, `close it with "; a new line inside a string is written \n`,
		"this string is not closed in its line")
}

// isControl reports whether r is a control character, a tab excepted.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// badEscape faults a string for what begins with a backslash at offset at.
func (l *lexer) badEscape(at int) tokenKind {
	end := at + 1
	if end < len(l.src) && l.src[end] != '\n' {
		_, size := utf8.DecodeRuneInString(l.src[end:])
		end += size
	}
	hint := `the escapes are \" \\ \n \t \r and \u with four hex digits`
	if at+1 < len(l.src) && l.src[at+1] == 'u' {
		hint = `\u has exactly four hex digits, and half a surrogate pair is no character`
	}
	return l.badInString(at, end, hint, l.src[at:end]+" is not an escape")
}

// badInString faults the string at l.at, with the position on src[at:end] in it.
func (l *lexer) badInString(at, end int, hint, message string) tokenKind {
	start := l.at
	l.at = at
	kind := l.fault(end, hint, "%s", message)
	// The token begins at the quote and lasts to its closing quote, so that
	// the rest of the string is not read as code.
	l.bad[int32(start)] = l.bad[int32(at)]
	for l.at < len(l.src) && l.src[l.at] != '\n' {
		c := l.src[l.at]
		l.at++
		if c == '"' {
			break
		}
		if c == '\\' && l.at < len(l.src) && l.src[l.at] != '\n' {
			l.at++
		}
	}
	return kind
}

// scanOtherQuote faults a string in quotes of another kind.
func (l *lexer) scanOtherQuote() tokenKind {
	open, size := utf8.DecodeRuneInString(l.src[l.at:])
	closing := string(open)
	switch open {
	case '“', '”':
		closing = "”"
	case '‘':
		closing = "’"
	}
	text, end := "text", l.at+size
	line := lineOf(l.src[l.at+size:], 1)
	if n := strings.Index(line, closing); n >= 0 {
		text, end = line[:n], end+n+len(closing)
	}
	return l.fault(end, "write \""+text+"\"", "strings are written with straight double quotes")
}

// escapeLength returns the length of the escape at the start of s, 0 if it is
// not one. A surrogate pair is one escape.
func escapeLength(s string) int {
	if len(s) < 2 {
		return 0
	}
	if _, ok := escapes[s[1]]; ok {
		return 2
	}
	_, size := unicodeEscape(s)
	return size
}

// unicodeEscape decodes \uXXXX, or two that are a surrogate pair, at the start
// of s; the length is 0 if it is neither.
func unicodeEscape(s string) (rune, int) {
	high, ok := hexEscape(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(high) {
		return high, 6
	}
	low, ok := hexEscape(s[6:])
	if r := utf16.DecodeRune(high, low); ok && r != utf8.RuneError {
		return r, 12
	}
	return 0, 0
}

func hexEscape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// unquote decodes a string token that scanString accepted. Without escapes the
// result aliases it.
func unquote(literal string) string {
	s := literal[1 : len(literal)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for at := 0; at < len(s); {
		if s[at] != '\\' {
			b = append(b, s[at])
			at++
			continue
		}
		if c, ok := escapes[s[at+1]]; ok {
			b = append(b, c)
			at += 2
			continue
		}
		r, size := unicodeEscape(s[at:])
		b = utf8.AppendRune(b, r)
		at += size
	}
	return string(b)
}
