package parse

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heddle-live/heddle/engine/value"
)

type tokenKind uint8

const (
	tokenEnd       tokenKind = iota // of the statement
	tokenBad                        // has an error of its own
	tokenName                       // lower-case: relation, view, column, keyword
	tokenVariable                   // X, _x
	tokenWildcard                   // _
	tokenParameter                  // $name
	tokenInt
	tokenFloat
	tokenString
	tokenBytes        // x"00ff"
	tokenTimestamp    // t"2026-11-30T12:00:00Z"
	tokenDuration     // 10s, in a clock only
	tokenOpen         // (
	tokenClose        // )
	tokenOpenBracket  // [
	tokenCloseBracket // ]
	tokenComma
	tokenColon
	tokenSemicolon
	tokenDot
	tokenQuestion
	tokenBang
	tokenPlus
	tokenMinus
	tokenStar
	tokenSlash
	tokenPercent
	tokenArrow     // <-
	tokenTurnstile // :-
	tokenAssign    // :=
	tokenEq
	tokenNe
	tokenLt
	tokenLe
	tokenGt
	tokenGe
)

// token is a piece of source text, src[start:end].
type token struct {
	kind       tokenKind
	column1    bool // stands first in its line, and in column 1 but for comments
	first      bool // stands first in its line
	start, end int32
	line, col  int32
}

// symbols are tried in order, so longer ones come first. Those of kind
// tokenBad are what people write who know another language; hint says what to
// write here.
var symbols = []struct {
	text string
	kind tokenKind
	hint string
}{
	{text: "<->", kind: tokenBad, hint: "a rule is written head <- body"},
	{text: "<-", kind: tokenArrow},
	{text: "<=", kind: tokenLe},
	{text: "<>", kind: tokenBad, hint: "\"not equal\" is written !="},
	{text: "<", kind: tokenLt},
	{text: ">=", kind: tokenGe},
	{text: ">", kind: tokenGt},
	{text: "!=", kind: tokenNe},
	{text: "!", kind: tokenBang},
	{text: "===", kind: tokenBad, hint: "equality is written ="},
	{text: "==", kind: tokenBad, hint: "equality is written ="},
	{text: "=<", kind: tokenBad, hint: "\"at most\" is written <="},
	{text: "=>", kind: tokenBad, hint: "\"at least\" is written >=, and a rule head <- body"},
	{text: "=", kind: tokenEq},
	{text: ":=", kind: tokenAssign},
	{text: ":-", kind: tokenTurnstile},
	{text: ":", kind: tokenColon},
	{text: "->", kind: tokenBad, hint: "a rule is written head <- body"},
	{text: "--", kind: tokenBad, hint: "a comment begins with //"},
	{text: "-", kind: tokenMinus},
	{text: "*", kind: tokenStar},
	{text: "/", kind: tokenSlash},
	{text: "%", kind: tokenPercent},
	{text: "&&", kind: tokenBad, hint: "conditions are joined by a comma"},
	{text: "&", kind: tokenBad, hint: "conditions are joined by a comma"},
	{text: "∧", kind: tokenBad, hint: "conditions are joined by a comma"},
	{text: "||", kind: tokenBad, hint: "there is no \"or\": write one rule for each alternative"},
	{text: "|", kind: tokenBad, hint: "there is no \"or\": write one rule for each alternative"},
	{text: "∨", kind: tokenBad, hint: "there is no \"or\": write one rule for each alternative"},
	{text: ";", kind: tokenSemicolon},
	{text: "#", kind: tokenBad, hint: "a comment begins with //"},
	{text: "≤", kind: tokenBad, hint: "\"at most\" is written <="},
	{text: "≥", kind: tokenBad, hint: "\"at least\" is written >="},
	{text: "≠", kind: tokenBad, hint: "\"not equal\" is written !="},
	{text: "←", kind: tokenBad, hint: "the arrow of a rule is written <-"},
	{text: "¬", kind: tokenBad, hint: "negation is written !"},
	{text: "{", kind: tokenBad, hint: "a fact is written +edge(1, 2), a query ?edge(1, X)"},
}

// lexer cuts src into tokens. The errors of bad tokens are kept by the token's
// start, for the parser to report with the statement.
type lexer struct {
	src    string
	at     int // byte offset
	tokens []token
	bad    map[int32]*Error

	line      int
	lineStart int  // byte offset
	marked    int  // byte offset in the line whose column is known
	markedCol int  // its column
	column1   bool // nothing but comments since column 1
	first     bool // no token in this line yet
}

// newLexer returns a lexer at the start of src, which is valid UTF-8.
func newLexer(src string) *lexer {
	l := &lexer{src: src, bad: map[int32]*Error{}}
	if strings.HasPrefix(src, "\ufeff") {
		l.at = len("\ufeff")
	}
	l.newLine(l.at, 1)
	return l
}

func (l *lexer) newLine(start, number int) {
	l.line, l.lineStart, l.marked, l.markedCol = number, start, start, 1
	l.column1, l.first = true, true
}

// run reads all tokens.
func (l *lexer) run() {
	for l.skipSpace() {
		start, kind := l.at, tokenKind(0)
		tok := token{
			column1: l.column1, first: l.first,
			start: int32(start), line: int32(l.line), col: int32(l.columnOf(start)),
		}
		kind = l.scan()
		tok.kind, tok.end = kind, int32(l.at)
		l.tokens = append(l.tokens, tok)
		l.column1, l.first = false, false
	}
}

// columnOf returns the column of an offset in the current line. Calls come with
// rising offsets, so that a long line is counted once.
func (l *lexer) columnOf(offset int) int {
	l.markedCol += utf8.RuneCountInString(l.src[l.marked:offset])
	l.marked = offset
	return l.markedCol
}

// skipSpace moves to the next token and reports whether there is one.
func (l *lexer) skipSpace() bool {
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		switch c := rest[0]; {
		case c == '\n':
			l.at++
			l.newLine(l.at, l.line+1)
		case c == ' ' || c == '\t' || c == '\r':
			if l.at == l.lineStart {
				l.column1 = false
			}
			l.at++
		case strings.HasPrefix(rest, "//") || c == '%' && l.first:
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				l.at += end
			} else {
				l.at = len(l.src)
			}
		case strings.HasPrefix(rest, "/*"):
			if !l.skipBlockComment() {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// skipBlockComment skips a comment, which may contain others. It returns false
// and stays if the comment never ends.
func (l *lexer) skipBlockComment() bool {
	depth, at, line, lineStart := 0, l.at, l.line, l.lineStart
	for at < len(l.src) {
		switch rest := l.src[at:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			at += 2
			if depth > 0 {
				continue
			}
			if line != l.line {
				l.newLine(lineStart, line)
			}
			l.at = at
			return true
		case rest[0] == '\n':
			at++
			line, lineStart = line+1, at
		default:
			at++
		}
	}
	return false
}

// fault makes the token from l.at to end a bad one.
func (l *lexer) fault(end int, hint, format string, args ...any) tokenKind {
	if len(l.bad) >= errorsMax {
		// Nobody will read it, and a long line of faults must not cost its
		// length for each.
		l.at = end
		return tokenBad
	}
	pos := Position{Line: l.line, Column: l.columnOf(l.at)}
	width := utf8.RuneCountInString(l.src[l.at:end])
	line := lineOf(l.src[l.lineStart:], 1)
	l.bad[int32(l.at)] = newError(line, pos, width, hint, fmt.Sprintf(format, args...))
	l.at = end
	return tokenBad
}

// scan reads the token at l.at.
func (l *lexer) scan() tokenKind {
	c := l.src[l.at]
	switch {
	case isLetter(c) || c == '_':
		return l.scanName()
	case isDigit(c):
		return l.scanNumber()
	case c == '"':
		return l.scanString()
	case c == '$':
		return l.scanParameter()
	case c == '.' && l.at+1 < len(l.src) && isDigit(l.src[l.at+1]):
		end := l.numberEnd(l.at + 1)
		return l.fault(end, "write 0"+l.src[l.at:end], "a float begins with a digit")
	case c == '\'' || c == '`' || strings.HasPrefix(l.src[l.at:], "“") ||
		strings.HasPrefix(l.src[l.at:], "”") || strings.HasPrefix(l.src[l.at:], "‘"):
		return l.scanOtherQuote()
	case strings.HasPrefix(l.src[l.at:], "/*"):
		end := l.at + len("/*")
		kind := l.fault(end, "close it with */", "this comment never ends")
		l.at = len(l.src)
		return kind
	}
	return l.scanSymbol()
}

// plainSymbols are those that begin no longer one; a bulk of facts is little
// else.
var plainSymbols = [256]tokenKind{
	'(': tokenOpen, ')': tokenClose, '[': tokenOpenBracket, ']': tokenCloseBracket,
	',': tokenComma, '.': tokenDot, '?': tokenQuestion, '+': tokenPlus,
}

func (l *lexer) scanSymbol() tokenKind {
	if kind := plainSymbols[l.src[l.at]]; kind != tokenEnd {
		l.at++
		return kind
	}
	for _, s := range symbols {
		if !strings.HasPrefix(l.src[l.at:], s.text) {
			continue
		}
		if s.kind == tokenBad {
			return l.fault(l.at+len(s.text), s.hint,
				"`%s` is not part of the rule language", s.text)
		}
		l.at += len(s.text)
		return s.kind
	}
	r, size := utf8.DecodeRuneInString(l.src[l.at:])
	hint := ""
	if r >= utf8.RuneSelf {
		hint = "names consist of the letters a to z and A to Z, digits and _; " +
			"other characters stand in strings: \"…\""
	}
	return l.fault(l.at+size, hint, "the character %q is not part of the rule language", r)
}

func (l *lexer) scanName() tokenKind {
	start, end := l.at, nameEnd(l.src, l.at)
	text := l.src[start:end]
	if (text == "x" || text == "t") && strings.HasPrefix(l.src[end:], `"`) {
		return l.scanPrefixed(end)
	}
	if len(text) > NameBytesMax {
		return l.fault(end, "", "this name has %d characters, more than the %d allowed",
			len(text), NameBytesMax)
	}
	l.at = end
	switch {
	case text == "_":
		return tokenWildcard
	case text[0] >= 'a' && text[0] <= 'z':
		return tokenName
	}
	return tokenVariable
}

// scanPrefixed reads a literal of bytes or of a timestamp, whose quote stands at.
func (l *lexer) scanPrefixed(quote int) tokenKind {
	line := lineOf(l.src[quote+1:], 1)
	length := strings.IndexByte(line, '"')
	if length < 0 {
		return l.fault(quote+1+len(line), `close it with "`,
			"this value is not closed in its line")
	}
	kind, text, end := tokenBytes, line[:length], quote+1+length+1
	if l.src[l.at] == 't' {
		kind = tokenTimestamp
		if _, ok := value.ParseTime(text); !ok {
			return l.fault(end, `for instance: t"2026-11-30T12:00:00Z" or `+
				`t"2026-11-30T12:00:00.250+01:00"`, "%s is not a timestamp", l.src[l.at:end])
		}
	} else if _, err := hex.DecodeString(text); err != nil {
		return l.fault(end, `bytes are pairs of hex digits: x"00ff"`, "%s is not bytes",
			l.src[l.at:end])
	}
	l.at = end
	return kind
}

func (l *lexer) scanParameter() tokenKind {
	start := l.at + 1
	end := nameEnd(l.src, start)
	switch {
	case end == start:
		return l.fault(end, "a parameter is written $name", "$ without a name")
	case !isLetter(l.src[start]):
		return l.fault(end, "for instance: $p"+l.src[start:end],
			"the name of a parameter begins with a letter")
	case end-start > NameBytesMax:
		return l.fault(end, "", "this name has %d characters, more than the %d allowed",
			end-start, NameBytesMax)
	}
	l.at = end
	return tokenParameter
}

// scanNumber reads digits ["." digits [("e"|"E") ["+"|"-"] digits]].
func (l *lexer) scanNumber() tokenKind {
	start, kind := l.at, tokenInt
	end := digitsEnd(l.src, start)
	if end+1 < len(l.src) && l.src[end] == '.' && isDigit(l.src[end+1]) {
		kind = tokenFloat
		end = digitsEnd(l.src, end+1)
		if end < len(l.src) && (l.src[end] == 'e' || l.src[end] == 'E') {
			digits := end + 1
			if digits < len(l.src) && (l.src[digits] == '+' || l.src[digits] == '-') {
				digits++
			}
			if to := digitsEnd(l.src, digits); to > digits {
				end = to
			}
		}
	}
	if whole := l.numberEnd(start); whole > end {
		if _, ok := durationUnits[l.src[end:whole]]; ok && kind == tokenInt {
			l.at = whole
			return tokenDuration
		}
		return l.badNumber(start, whole)
	}
	l.at = end
	return kind
}

// durationUnits are the milliseconds of what may follow the number of a clock.
var durationUnits = map[string]int64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

// badNumber words the error of a number with something wrong in its spelling.
func (l *lexer) badNumber(start, end int) tokenKind {
	text := l.src[start:end]
	hint := ""
	switch plain := strings.ReplaceAll(text, "_", ""); {
	case plain != text && digitsEnd(plain, 0) == len(plain):
		hint = "write it without _: " + plain
	case strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X"):
		hint = "only decimal numbers are understood"
	case strings.ContainsAny(text, "eE") && !strings.Contains(text, "."):
		if i := strings.IndexAny(text, "eE"); digitsEnd(text, 0) == i && i+1 < len(text) {
			hint = "a float has a point: " + text[:i] + ".0" + text[i:]
			if _, err := strconv.ParseFloat(text, 64); errors.Is(err, strconv.ErrRange) {
				hint = hintFloatRange
			}
		}
	case isLetter(text[len(text)-1]) && digitsEnd(text, 0) == len(text)-1:
		hint = "a name begins with a letter, and a number has no suffix"
	}
	return l.fault(end, hint, "%s is not a number", text)
}

// numberEnd returns where a word that begins with a number ends.
func (l *lexer) numberEnd(at int) int {
	for at < len(l.src) {
		c := l.src[at]
		point := c == '.' && at+1 < len(l.src) && isDigit(l.src[at+1])
		sign := (c == '+' || c == '-') && (l.src[at-1] == 'e' || l.src[at-1] == 'E') &&
			at+1 < len(l.src) && isDigit(l.src[at+1])
		if !isNameByte(c) && !point && !sign {
			break
		}
		at++
	}
	return at
}

func isLetter(c byte) bool   { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isNameByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

func nameEnd(s string, at int) int {
	for at < len(s) && isNameByte(s[at]) {
		at++
	}
	return at
}

func digitsEnd(s string, at int) int {
	for at < len(s) && isDigit(s[at]) {
		at++
	}
	return at
}

// tokenAt returns the token at the start of s, "" if there is none. Errors of
// analysis underline it.
func tokenAt(s string) string {
	if s == "" || !utf8.ValidString(s) {
		return ""
	}
	l := newLexer(s)
	// The sign belongs to the number whose position is that of the sign.
	if len(s) > 1 && s[0] == '-' && isDigit(s[1]) {
		l.at++
	}
	start := l.at
	if !l.skipSpace() || l.at != start {
		return ""
	}
	l.scan()
	return s[:l.at]
}
