package web_test

import "github.com/deadletteroffice/dlo/internal/api"

// call contains the Go types for the JSON of one operation in openapi.yaml. Package web decodes a
// request into the type in the field "takes". It encodes a response from the type in the field
// "gives". For NDJSON, the type is that of one line. A type is nil if there is no JSON.
type call struct{ takes, gives any }

// either means that the JSON has one of several types, as with anyOf.
type either []any

// byStatus contains the Go types of the JSON of a response, because the type depends on the status.
type byStatus map[string]any

// calls lists all operations of openapi.yaml.
var calls = map[string]call{
	// The response of each of the following operations has no schema. It is either bytes, a
	// document, an event stream, or empty.
	"GET /openapi.yaml":      {},
	"GET /letters/{id}/body": {},
	"GET /events":            {},
	"DELETE /views/{id}":     {},
	"DELETE /overrides/{id}": {},
	"DELETE /bindings/{id}":  {},

	// The bodies of the following operations are streams, with one JSON value on each line.
	"GET /letters/export":  {gives: api.ExportedLetter{}},
	"POST /letters/import": {takes: api.ExportedLetter{}, gives: api.Import{}},

	"GET /letters":                 {gives: api.Letters{}},
	"GET /letters/count":           {gives: api.Count{}},
	"GET /letters/facets":          {gives: api.Facets{}},
	"GET /letters/histogram":       {gives: api.Histogram{}},
	"GET /letters/{id}":            {gives: api.Letter{}},
	"POST /letters/{id}/reveal":    {takes: api.RevealRequest{}, gives: api.Revealed{}},
	"POST /letters/{id}/revisions": {takes: api.RevisionRequest{}, gives: api.Edited{}},
	"POST /letters/{id}/type":      {takes: api.PickRequest{}, gives: api.Pick{}},
	"POST /annotations":            {takes: either{api.Annotation{}, []api.Annotation{}}, gives: api.Annotated{}},

	"GET /operations": {gives: api.Operations{}},
	"POST /operations": {
		takes: api.OperationRequest{},
		gives: byStatus{"200": api.Plan{}, "202": api.Operation{}},
	},
	"GET /operations/{id}":         {gives: api.OperationLetters{}},
	"PATCH /operations/{id}":       {takes: api.RateChange{}, gives: api.Operation{}},
	"POST /operations/{id}/pause":  {gives: api.Operation{}},
	"POST /operations/{id}/resume": {gives: api.Operation{}},
	"POST /operations/{id}/cancel": {gives: api.Operation{}},
	"GET /audit":                   {gives: api.Audit{}},

	"GET /brokers":                 {gives: api.Brokers{}},
	"POST /brokers/{name}/connect": {gives: api.Broker{}},
	"GET /trial":                   {gives: api.Trial{}},
	"GET /topology/findings":       {gives: api.Topology{}},
	"POST /topology/plan":          {takes: api.PlanRequest{}, gives: api.Plans{}},
	"POST /topology/apply":         {takes: api.ApplyPlanRequest{}, gives: api.AppliedPlan{}},
	"GET /topology/adopted":        {gives: api.AdoptedPolicies{}},
	"POST /topology/undo":          {takes: api.UndoRequest{}, gives: api.AdoptedPolicy{}},
	"POST /topology/leave":         {takes: api.LeaveRequest{}, gives: api.Left{}},
	"POST /trial":                  {takes: api.TrialRequest{}, gives: api.Trial{}},

	"GET /queues":                   {gives: api.Queues{}},
	"POST /store/accept":            {},
	"POST /store/hold":              {},
	"POST /queues/pause":            {takes: api.QueueRequest{}, gives: api.QueueRetries{}},
	"POST /queues/resume":           {takes: api.QueueRequest{}, gives: api.QueueRetries{}},
	"POST /queues/drain":            {takes: api.DrainRequest{}, gives: api.Drain{}},
	"GET /queues/drains":            {gives: api.Drains{}},
	"POST /queues/drains/{id}/stop": {gives: api.Drain{}},

	"GET /groups":                      {gives: api.Groups{}},
	"GET /groups/{id}":                 {gives: api.GroupDetail{}},
	"PATCH /groups/{id}":               {takes: api.Change{}, gives: api.Decision{}},
	"POST /groups/{id}/merge":          {takes: api.MergeRequest{}, gives: api.Decision{}},
	"POST /groups/{id}/split":          {gives: api.Decision{}},
	"POST /groups/{id}/pause":          {takes: api.ReasonRequest{}, gives: api.GroupRetries{}},
	"POST /groups/{id}/resume":         {takes: api.ReasonRequest{}, gives: api.GroupRetries{}},
	"GET /groups/decisions":            {gives: api.Decisions{}},
	"POST /groups/decisions":           {takes: api.GroupsChange{}, gives: api.Decision{}},
	"POST /groups/decisions/{id}/undo": {gives: api.Decision{}},
	"GET /deploys":                     {gives: api.Deploys{}},
	"POST /deploys":                    {takes: api.DeployRequest{}, gives: api.Deploy{}},
	"GET /digest":                      {gives: api.Digest{}},
	"POST /digest/send":                {gives: api.DigestSent{}},
	"POST /channels/test":              {takes: api.ChannelTest{}, gives: api.ChannelTested{}},

	"GET /rules":               {gives: api.Rules{}},
	"POST /rules/test":         {takes: api.RuleTestRequest{}, gives: api.WhatIf{}},
	"POST /rules/apply":        {takes: api.ApplyRequest{}, gives: api.Applied{}},
	"GET /overrides":           {gives: api.Overrides{}},
	"POST /overrides":          {takes: api.OverrideRequest{}, gives: api.Override{}},
	"GET /me":                  {gives: api.Me{}},
	"GET /users":               {gives: api.Users{}},
	"POST /users":              {takes: api.UserRequest{}, gives: api.Invitation{}},
	"POST /users/{name}/reset": {gives: api.Invitation{}},
	"DELETE /users/{name}":     {},
	"GET /tokens":              {gives: api.Tokens{}},
	"POST /tokens":             {takes: api.TokenRequest{}, gives: api.NewSecret{}},
	"DELETE /tokens/{name}":    {},

	"GET /views":  {gives: api.Views{}},
	"POST /views": {takes: api.ViewRequest{}, gives: api.View{}},

	"GET /types":          {gives: api.Types{}},
	"POST /types":         {gives: api.Upload{}}, // takes a file
	"DELETE /types/{set}": {gives: api.Removal{}},
	"GET /types/proto":    {gives: api.TypeSource{}},
	"POST /types/match":   {takes: api.MatchRequest{}, gives: api.MatchAnswer{}},
	"GET /bindings":       {gives: api.Bindings{}},
	"POST /bindings":      {takes: api.BindingRequest{}, gives: api.Pick{}},
}
