package admin

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"

	"github.com/heddle-live/heddle/engine"
)

const (
	idempotencyKeyBytesMax = 255
	// programChangesMax is how often a request is decoded again because a new
	// program came between its check and its commit.
	programChangesMax = 3
)

// The limits' names in messages, as the server's configuration spells them.
const (
	limitBody = "body_bytes"
	limitLoad = "load_bytes"
)

// transactionBody documents the JSON form of a transaction; decodeTransaction reads it.
type transactionBody struct {
	Insert  map[string][][]any `json:"insert,omitempty" doc:"Rows to insert, by relation"`
	Delete  map[string][][]any `json:"delete,omitempty" doc:"Rows to delete, by relation"`
	Program string             `json:"program,omitempty" doc:"Or statements as text"`

	ExpectRevision uint64 `json:"expect_revision,omitempty" doc:"Only at this revision"`
}

func (a *API) transact(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	src, err := readBody(w, r, a.limits.BodyBytes, limitBody)
	if err != nil {
		return err
	}
	shape, err := shapeOf(r, src)
	if err != nil {
		return err
	}
	tx, err := a.transaction(r, "transact")
	if err != nil {
		return err
	}
	if tx.IdempotencyKey != "" {
		h := requestHash(r)
		_, _ = io.WriteString(h, src)
		h.Sum(tx.RequestHash[:0])
	}
	var receipt Receipt
	for attempt := 1; ; attempt++ {
		if err = a.decode(graph, src, shape, &tx); err != nil {
			return err
		}
		receipt, err = a.service.Transact(r.Context(), graph, tx)
		if !programChanged(err) || attempt == programChangesMax {
			break
		}
	}
	if err != nil {
		return graphError(graph, err)
	}
	writeReceipt(w, receipt)
	return nil
}

// transaction begins the transaction of a request to the route with an id: who
// writes, under which key, at which revision.
func (a *API) transaction(r *http.Request, id string) (tx Transaction, err error) {
	tx.Caller = callerOf(r)
	if tx.IdempotencyKey, err = idempotencyKey(r); err != nil {
		return tx, err
	}
	_, numbers, err := queryValues(r, a.flagsOf(id))
	if n, ok := numbers[expectFlag.name]; ok {
		tx.ExpectRevision = &n
	}
	return tx, err
}

// decode fills in tx by the program that is in force now.
func (a *API) decode(graph, src string, shape bodyShape, tx *Transaction) error {
	program, err := a.service.Schema(graph)
	if err != nil {
		return graphError(graph, err)
	}
	tx.Program = program
	text := src
	if shape == shapeJSON {
		decoded, err := decodeTransaction(program, src)
		if err != nil {
			return err
		}
		if err := tx.expect(decoded.atRevision); err != nil {
			return err
		}
		if text = decoded.text; text == "" {
			tx.Statements = engine.Plain(decoded.ops)
			return nil
		}
	}
	tx.Statements, err = parseTransaction(program, text)
	return err
}

// expect takes over the revision that a body names, nil for none.
func (tx *Transaction) expect(revision *uint64) error {
	switch {
	case revision == nil:
	case tx.ExpectRevision == nil:
		tx.ExpectRevision = revision
	case *tx.ExpectRevision != *revision:
		return newProblem(http.StatusBadRequest, "parameter_invalid",
			"the body expects revision %d and the query string %d", *revision, *tx.ExpectRevision)
	}
	return nil
}

// writeReceipt sends a receipt without reflection; the route is hot.
func writeReceipt(w http.ResponseWriter, receipt Receipt) {
	body := make([]byte, 0, 96)
	body = append(body, `{"revision":`...)
	body = strconv.AppendUint(body, receipt.Revision, 10)
	body = append(body, `,"inserted":`...)
	body = strconv.AppendInt(body, int64(receipt.Inserted), 10)
	body = append(body, `,"deleted":`...)
	body = strconv.AppendInt(body, int64(receipt.Deleted), 10)
	body = append(body, `,"replayed":`...)
	body = strconv.AppendBool(body, receipt.Replayed)
	for i, s := range receipt.Statements {
		opening := `,"statements":[`
		if i > 0 {
			opening = ","
		}
		body = fmt.Appendf(body, `%s{"rows":%d,"inserted":%d,"deleted":%d}`,
			opening, s.Rows, s.Inserted, s.Deleted)
	}
	if receipt.Statements != nil {
		body = append(body, ']')
	}
	body = append(body, "}\n"...)
	writeBody(w, http.StatusOK, "application/json", body)
}

// idempotencyKey returns the request's Idempotency-Key, "" if it has none.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header["Idempotency-Key"]
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 || values[0] == "" || len(values[0]) > idempotencyKeyBytesMax {
		p := newProblem(http.StatusBadRequest, "idempotency_key",
			"the header Idempotency-Key must be one value of 1 to %d bytes", idempotencyKeyBytesMax)
		detail := Detail{Message: p.Detail, Location: "header Idempotency-Key"}
		return "", p.withErrors([]Detail{detail}, 1)
	}
	return values[0], nil
}

// requestHash begins the hash that tells whether a repeated Idempotency-Key
// repeats the same request: where it goes, how it is to be read, then the body.
func requestHash(r *http.Request) hash.Hash {
	h := sha256.New()
	for _, part := range []string{
		r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"),
	} {
		_, _ = io.WriteString(h, part)
		_, _ = h.Write([]byte{0})
	}
	return h
}
