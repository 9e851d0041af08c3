package deadletter

import "time"

// Plan is the result of a dry run. It says what an operation would do.
type Plan struct {
	Action   Verb        `json:"action"`
	Until    time.Time   `json:"until"`    // the selection is as of this time, without later arrivals and changes
	Total    int         `json:"total"`    // exact number of selected letters
	Eligible int         `json:"eligible"` // number of letters that the action can take, before the limit First
	Causes   int         `json:"causes"`   // number of groups of the eligible letters; merged groups count once
	First    int         `json:"first"`    // maximum number of letters to act on; 0 = all
	Queues   []PlanQueue `json:"-"`        // queues of the eligible letters, those with most letters first
	Skipped  []PlanSkip  `json:"skipped"`  // reasons for skipped letters, those with most letters first
	Warnings []string    `json:"warnings"` // warnings that do not belong to one queue
	To       string      `json:"to"`
	Pace     Pace        `json:"pace"`
}

// CanaryCauses returns the number of causes of the letters that the canary sends. It returns 0 if
// there are fewer than two, or if the number is unknown because First leaves letters out.
func (p Plan) CanaryCauses() int {
	if n := min(p.Causes, p.Pace.Canary); n > 1 && (p.First == 0 || p.First >= p.Eligible) {
		return n
	}
	return 0
}

// PlanQueue is the part of a plan for one origin queue.
type PlanQueue struct {
	Broker   string      `json:"broker"`
	VHost    string      `json:"vhost"`
	Queue    string      `json:"queue"`
	Target   string      `json:"target"` // queue to which the letters go: the origin queue or the target of a redirect
	Letters  int         `json:"letters"`
	CameBack int         `json:"came_back"` // number of letters that came back after people requeued them
	Last     OperationID `json:"-"`         // last operation after which a letter came back; 0 = none
	LastAt   time.Time   `json:"-"`
	Facts    QueueFacts  `json:"-"`       // what the broker reports about the target now
	Leaves   bool        `json:"-"`       // true if the letters are sent, now or once they are due
	Away     string      `json:"-"`       // reason why the letters cannot be sent now; "" = they can be sent
	Warning  string      `json:"warning"` // what to consider first; "" = nothing
}

// Place returns the place to which the letters belong.
func (q PlanQueue) Place() Origin { return Origin{Broker: q.Broker, VHost: q.VHost, Queue: q.Queue} }

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
