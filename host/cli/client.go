package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/heddle-live/heddle/admin"
)

// answerBytesMax is the longest answer that a command reads. The server's own
// limits keep answers far below.
const answerBytesMax = 1 << 30

// client speaks to one server's admin listener.
type client struct {
	server   string // scheme and host, without a path
	settings settings
	http     *http.Client
}

// request is one request to a client's server.
type request struct {
	method, path string // the path is escaped
	media        string // of the body
	body         io.Reader
	header       map[string]string
}

// newClient checks the settings. A client without a key is good for nothing, and
// says so before it asks.
func newClient(s settings) (*client, error) {
	u, err := url.Parse(s.server)
	if err != nil || u.Host == "" {
		return nil, &Error{
			Code: ExitUsage, Text: fmt.Sprintf("%q is no server's address", s.server),
			Hint: "give it like http://127.0.0.1:4444, " + serverPlaces,
		}
	}
	if s.key == "" {
		return nil, &Error{
			Code: ExitUnreachable, Text: "no admin key is given",
			Hint: "give it " + keyPlaces + "; " + keyHome,
		}
	}
	return &client{server: u.Scheme + "://" + u.Host, settings: s, http: &http.Client{}}, nil
}

const (
	serverPlaces = "with --server, as HEDDLE_SERVER or as server in the file that --config names"
	keyPlaces    = "with --key, as HEDDLE_KEY or as key in the file that --config names"
	keyHome      = "a server that was given none keeps its key in admin.key of its data " +
		"directory, which HEDDLE_DATA_DIR names"
)

// do sends a request and returns the body of a successful answer. Every error is
// an *Error.
func (c *client) do(ctx context.Context, r request) ([]byte, error) {
	out, err := http.NewRequestWithContext(ctx, r.method, c.server+r.path, r.body)
	if err != nil {
		return nil, &Error{Code: ExitUsage, Text: err.Error()}
	}
	out.Header.Set("Authorization", "Bearer "+c.settings.key)
	if r.media != "" {
		out.Header.Set("Content-Type", r.media)
	}
	for name, v := range r.header {
		out.Header.Set(name, v)
	}
	answer, err := c.http.Do(out)
	if err != nil {
		return nil, c.transportError(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	if err != nil {
		return nil, c.transportError(ctx, err)
	}
	if answer.StatusCode < 400 {
		return body, nil
	}
	return nil, c.refusal(answer, body)
}

// get decodes the answer of do into v, unless v is nil.
func (c *client) get(ctx context.Context, r request, v any) ([]byte, error) {
	body, err := c.do(ctx, r)
	if err != nil || v == nil {
		return body, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, &Error{
			Code: ExitUnreachable,
			Text: fmt.Sprintf("the answer of %s cannot be read: %s", c.server, err),
			Hint: "is it the admin listener of a Heddle server?",
		}
	}
	return body, nil
}

// transportError words why no answer came.
func (c *client) transportError(ctx context.Context, err error) error {
	var file *fileError
	switch {
	case errors.As(err, &file):
		return &Error{Code: ExitUsage, Text: file.Error()}
	case ctx.Err() != nil:
		return &Error{
			Code: ExitUnreachable,
			Text: "interrupted; the request may or may not have had an effect",
		}
	}
	reason := err.Error()
	if u, ok := errors.AsType[*url.Error](err); ok {
		reason = u.Err.Error()
	}
	e := &Error{
		Code: ExitUnreachable,
		Text: fmt.Sprintf("%s does not answer: %s", c.server, reason),
	}
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Text = fmt.Sprintf("there is no server at %s (connection refused)", c.server)
		e.Hint = `start one with "heddle serve" or "heddle demo"; another address is given ` +
			serverPlaces
	case errors.As(err, &dns):
		e.Hint = "the address is given " + serverPlaces
	}
	return e
}

// refusal words an answer with a status from 400 on.
func (c *client) refusal(answer *http.Response, body []byte) error {
	media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	p := new(admin.Problem)
	if media != "application/problem+json" || json.Unmarshal(body, p) != nil {
		return &Error{
			Code: ExitUnreachable,
			Text: fmt.Sprintf("%s answered %s, which is not a Heddle server's answer", c.server,
				answer.Status),
			Hint: "is it the admin listener? Its address is given " + serverPlaces,
		}
	}
	e := &Error{Code: ExitRefused, Problem: p, raw: body}
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Code = ExitUnreachable
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Code = ExitLater
	}
	if p.Status == http.StatusUnauthorized {
		p.Detail = fmt.Sprintf("the server at %s does not take the admin key from %s", c.server,
			c.settings.keyFrom)
		p.Hint = "give it " + keyPlaces + "; " + keyHome
	}
	if p.Code == "route_unknown" {
		p.Hint = "is it the admin listener? Its address is given " + serverPlaces
	}
	return e
}

// fileError is an error of the file that a request sends, as against one of the
// connection.
type fileError struct{ err error }

func (e *fileError) Error() string { return e.err.Error() }

// fileReader marks the errors of a file as fileErrors.
type fileReader struct{ io.Reader }

// Read reads from the file.
func (f fileReader) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &fileError{err}
	}
	return n, err
}
