package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Problem is one thing that is wrong with a request.
type Problem struct {
	Job      string `json:"job,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Field    string `json:"field,omitempty"`
	Found    string `json:"found,omitempty"`
	Expected string `json:"expected,omitempty"`
	Do       string `json:"do,omitempty"`
	Text     string `json:"text"` // all of it in one line
}

// Failure is an answer that is an error.
type Failure struct {
	Status   int       `json:"-"`
	Message  string    `json:"message"`
	Problems []Problem `json:"problems,omitempty"`
	Retry    int       `json:"-"` // seconds, for Retry-After
	Denied   string    `json:"-"` // what the audit log is told of a refusal that does not look like one
}

// Error is what the caller is told.
func (f *Failure) Error() string { return f.Message }

// Refuse returns a Failure that has no more to say.
func Refuse(status int, message string) error { return &Failure{Status: status, Message: message} }

// WriteJSON answers with a value. An error is that of a peer that went away.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// Answer writes a value with status 200, for handlers to return through.
func Answer(w http.ResponseWriter, value any) error {
	WriteJSON(w, http.StatusOK, value)
	return nil
}

// Receive reads a JSON body. A question or a change is no list of jobs, and far shorter.
func Receive(w http.ResponseWriter, r *http.Request, into any) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(ReadBodyTime)) // not all connections have one
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAsked))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			return err
		}
		return Refuse(http.StatusBadRequest, "the body is not read: "+err.Error())
	}
	return nil
}

// Number reads a whole number of the query.
func Number(r *http.Request, name string, usual, low, high int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, Refuse(http.StatusBadRequest, fmt.Sprintf("%s=%q: expected a number from %d to %d", name, text, low, high))
	}
	return n, nil
}
