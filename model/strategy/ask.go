package strategy

// Ask is a question to a slow or foreign decider: a program to solve, another
// process. The engine goes on without waiting.
type Ask struct {
	Asker    string
	Question []byte
}

// Answer is the reply to an Ask. It arrives as an event; its operations are tried
// one by one on the state of that moment.
type Answer struct {
	Asker string `json:"asker,omitempty"`
	Reply []byte `json:"reply,omitempty"`
}

// Asker is a Scheduler that puts questions outside; they are taken after Decide.
type Asker interface {
	Asks() []Ask
}

// Answerer is an Asker that says how its questions are answered. What Answer returns
// follows from the question alone, so that it may be called beside the engine, by
// whoever drives it, and take its time.
type Answerer interface {
	Answer(question []byte) (reply []byte, err error)
}
