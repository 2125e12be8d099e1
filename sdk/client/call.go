package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"github.com/heddle-live/heddle/sdk/frame"
)

// answerBytesMax is the longest answer to a call that is read; one has an entry for
// each statement of the action.
const answerBytesMax = 1 << 20

// errNoURL is returned by calls of a Client whose Config opens its sessions.
var errNoURL = errors.New("the client has no URL to call")

// Receipt tells what a call did. It is durable.
type Receipt struct {
	Revision uint64 `json:"revision"`
	Inserted int    `json:"inserted"` // rows that were not there before
	Deleted  int    `json:"deleted"`  // rows that are gone
	// Replayed says that the idempotency key was known: it is the first answer again,
	// and nothing was written now.
	Replayed bool `json:"replayed"`
	// Statements tells what each statement of the action did. A claim that came too
	// late has no Rows there, and is no error.
	Statements []StatementReceipt `json:"statements"`
}

// StatementReceipt tells what one statement of an action did.
type StatementReceipt struct {
	Rows     int `json:"rows"` // that met its condition
	Inserted int `json:"inserted"`
	Deleted  int `json:"deleted"`
}

// CallError is the server's refusal of a call. Unless Code is "outcome_unknown" or
// "internal", nothing was written.
type CallError struct {
	Code   string `json:"code"`   // stable, such as "action_unknown" or "precondition_failed"
	Detail string `json:"detail"` // for people
	Hint   string `json:"hint"`   // what to do about it, or ""
	Status int    `json:"status"` // of HTTP
}

// Error returns code and detail.
func (e *CallError) Error() string { return e.Code + ": " + e.Detail }

// CallOptions are what a call may ask for besides its action.
type CallOptions struct {
	// IdempotencyKey is any text of up to 255 bytes. A call that is repeated with it is
	// done once: use one wherever a call may be repeated after a lost answer.
	IdempotencyKey string
	// ExpectRevision, if not nil, is the revision that the graph must be at.
	ExpectRevision *uint64
}

// Call calls an action of the graph's program, with a value for each of its
// parameters as in Watch: one transaction, durable when Call returns. It goes over
// HTTP and needs no session. A refusal is a *CallError; after another error than
// that, and frame.ErrKey, the call may or may not have been done.
func (c *Client) Call(ctx context.Context, graph, action string, key ...any) (*Receipt, error) {
	return c.CallWith(ctx, CallOptions{}, graph, action, key...)
}

// CallWith is Call with options.
func (c *Client) CallWith(ctx context.Context, opt CallOptions, graph, action string, key ...any) (
	*Receipt, error,
) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	fail := func(err error) (*Receipt, error) {
		return nil, fmt.Errorf("call %s of %s: %w", action, graph, err)
	}
	request, err := c.callRequest(ctx, opt, graph, action, key)
	if err != nil {
		return fail(err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = response.Body.Close() }() // what there is to read was read
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return fail(err)
	}
	if response.StatusCode != http.StatusOK {
		return fail(refusal(response, body))
	}
	receipt := new(Receipt)
	if err := json.Unmarshal(body, receipt); err != nil || receipt.Revision == 0 {
		return fail(fmt.Errorf("%s is no Heddle server's data listener", c.api))
	}
	return receipt, nil
}

func (c *Client) callRequest(ctx context.Context, opt CallOptions, graph, action string,
	key []any,
) (*http.Request, error) {
	if c.api == "" {
		return nil, errNoURL
	}
	address := c.api + "/v1/graphs/" + url.PathEscape(graph) + "/actions/" + url.PathEscape(action)
	if len(key) > 0 {
		spelling, err := frame.JoinKey(key...)
		if err != nil {
			return nil, err
		}
		address += "/" + spelling
	}
	if opt.ExpectRevision != nil {
		address += "?expect_revision=" + strconv.FormatUint(*opt.ExpectRevision, 10)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return nil, err
	}
	if opt.IdempotencyKey != "" {
		request.Header.Set("Idempotency-Key", opt.IdempotencyKey)
	}
	return request, nil
}

// refusal reads the error of an answer that is none.
func refusal(response *http.Response, body []byte) error {
	e := new(CallError)
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if media != "application/problem+json" || json.Unmarshal(body, e) != nil || e.Code == "" {
		return fmt.Errorf("status %s from what is no Heddle server", response.Status)
	}
	e.Status = response.StatusCode
	return e
}

// apiOf returns scheme and host of the HTTP side of the server that a Client's URL
// names: on loopback it is plain.
func apiOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	scheme := "https"
	if u.Scheme == "http" || u.Scheme == "ws" || u.Scheme != "wss" && isLoopback(u.Hostname()) {
		scheme = "http"
	}
	return scheme + "://" + u.Host
}
