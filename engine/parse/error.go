package parse

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is one fault of a text, worded for the person who wrote it. Message
// says what is wrong, Hint (or "") what to write instead.
type Error struct {
	Position
	Message    string
	Hint       string
	SourceLine string // the faulty line; of a long one, the part around the fault

	caret int // characters of SourceLine before the fault
	width int // characters at fault, at least 1
}

// Error returns "line 3, column 9: message" on one line.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Detail returns the error with its source line, a caret under the fault, and
// the hint, for a terminal. It ends without a newline.
func (e *Error) Detail() string {
	var b strings.Builder
	b.WriteString(e.Error())
	if e.SourceLine != "" {
		margin := fmt.Sprintf("%5d | ", e.Line)
		b.WriteString("\n" + margin + e.SourceLine)
		b.WriteString("\n" + strings.Repeat(" ", len(margin)-2) + "| ")
		before := 0
		for _, r := range e.SourceLine {
			if before == e.caret {
				break
			}
			// A tab stays a tab, so that the caret stands under its character
			// whatever a terminal makes of it.
			if r != '\t' {
				r = ' '
			}
			b.WriteRune(r)
			before++
		}
		b.WriteString(strings.Repeat(" ", e.caret-before) + strings.Repeat("^", e.width))
	}
	if e.Hint != "" {
		b.WriteString("\n      hint: " + e.Hint)
	}
	return b.String()
}

// Errors are the faults of one text in order of position, at least one and at
// most 20.
type Errors []*Error

// Error returns the errors, one a line.
func (es Errors) Error() string { return es.join((*Error).Error) }

// Detail returns the details of all errors, one after the other.
func (es Errors) Detail() string { return es.join((*Error).Detail) }

// Unwrap makes errors.As find an *Error.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

// Full reports whether es has its fill. Whoever looks for faults stops then.
func (es Errors) Full() bool { return len(es) >= errorsMax }

// Add appends e unless es is full.
func (es *Errors) Add(e *Error) {
	if !es.Full() {
		*es = append(*es, e)
	}
}

func (es Errors) join(text func(*Error) string) string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = text(e)
	}
	return strings.Join(lines, "\n")
}

// NewError returns an error at pos of src. It underlines the token that begins
// there. hint may be "".
func NewError(src string, pos Position, hint, message string) *Error {
	line := lineOf(src, pos.Line)
	offset := offsetOf(line, pos.Column)
	width := 1
	if tok := tokenAt(line[offset:]); tok != "" {
		width = utf8.RuneCountInString(tok)
	}
	return newError(line, pos, width, hint, message)
}

const (
	// Of a long line, so much is shown before and after the fault.
	shownBefore = 60
	shownAfter  = 60
)

func newError(line string, pos Position, width int, hint, message string) *Error {
	runes := []rune(printable(line))
	at := min(max(pos.Column-1, 0), len(runes))
	from, to := max(0, at-shownBefore), min(len(runes), at+shownAfter)
	shown, caret := string(runes[from:to]), at-from
	if from > 0 {
		shown, caret = "…"+shown, caret+1
	}
	width = max(min(width, to-at), 1)
	if to < len(runes) {
		shown += "…"
	}
	return &Error{
		Position: pos, Message: printable(message), Hint: printable(hint),
		SourceLine: shown, caret: caret, width: width,
	}
}

// printable replaces control characters, since the text may end up on a
// terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// lineOf returns line number n of src, without its end.
func lineOf(src string, n int) string {
	for ; n > 1; n-- {
		end := strings.IndexByte(src, '\n')
		if end < 0 {
			return ""
		}
		src = src[end+1:]
	}
	if end := strings.IndexByte(src, '\n'); end >= 0 {
		src = src[:end]
	}
	return strings.TrimSuffix(src, "\r")
}

// offsetOf returns the byte offset of a column of line, at most its length.
func offsetOf(line string, column int) int {
	offset := 0
	for ; column > 1 && offset < len(line); column-- {
		_, size := utf8.DecodeRuneInString(line[offset:])
		offset += size
	}
	return offset
}
