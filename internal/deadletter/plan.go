package deadletter

import "time"

// Plan is the result of a dry run. It says what an operation would do.
type Plan struct {
	Action   Verb
	Until    time.Time   // the selection is as of this time, without later arrivals and changes
	Total    int         // exact number of selected letters
	Eligible int         // number of letters that the action can take, before the limit First
	First    int         // maximum number of letters to act on; 0 = all
	Queues   []PlanQueue // queues of the eligible letters, those with most letters first
	Skipped  []PlanSkip  // reasons for skipped letters, those with most letters first
	Warnings []string    // warnings that do not belong to one queue
	To       string
	Pace     Pace
}

// PlanQueue is the part of a plan for one origin queue.
type PlanQueue struct {
	Broker, VHost, Queue string
	Target               string // queue to which the letters go: the origin queue or the target of a redirect
	Letters              int
	CameBack             int         // number of letters that came back after people requeued them
	Last                 OperationID // last operation after which a letter came back; 0 = none
	LastAt               time.Time
	Facts                QueueFacts // what the broker reports about the target now
	Leaves               bool       // true if the letters are sent, now or once they are due
	Away                 string     // reason why the letters cannot be sent now; "" = they can be sent
	Warning              string     // what to consider first; "" = nothing
}

// PlanSkip is a reason why letters would be skipped.
type PlanSkip struct {
	Reason    string      `json:"reason"`
	Letters   int         `json:"letters"`
	Examples  []ID        `json:"examples"`           // up to 5 of the letters
	Operation OperationID `json:"operation,omitzero"` // operation that has the letters; 0 = none
	// state of that operation if its remaining letters can be taken over: paused or stopped; "" =
	// they cannot
	Halted   OperationState `json:"halted,omitzero"`
	HaltedAt time.Time      `json:"-"`
}
