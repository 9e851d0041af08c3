package server

import (
	"github.com/deadletteroffice/dlo/internal/annotation"
	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/drain"
	"github.com/deadletteroffice/dlo/internal/ingest"
	"github.com/deadletteroffice/dlo/internal/notify"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/trial"
	"github.com/deadletteroffice/dlo/web"
)

// The compiler checks here that these types implement the interfaces of other packages.
var (
	_ annotation.Store         = (*store.Store)(nil)
	_ classify.IndexStore      = (*store.Store)(nil)
	_ classify.ReaderStore     = (*store.Store)(nil)
	_ classify.Store           = (*store.Store)(nil)
	_ drain.Queue              = (*ingest.Once)(nil)
	_ drain.Store              = (*store.Store)(nil)
	_ ingest.Bounded           = (*rabbitmq.Inbox)(nil)
	_ ingest.Inbox             = (*rabbitmq.Inbox)(nil)
	_ ingest.Store             = (*store.Store)(nil)
	_ notify.DigestStore       = (*store.Store)(nil)
	_ notify.Store             = outbox{}
	_ operation.Redirects      = (*store.Store)(nil)
	_ operation.RetentionStore = (*store.Store)(nil)
	_ operation.Store          = (*store.Store)(nil)
	_ operation.TendStore      = (*store.Store)(nil)
	_ requeue.Broker           = (*rabbitmq.Link)(nil)
	_ requeue.Store            = (*store.Store)(nil)
	_ schemas.Store            = (*store.Store)(nil)
	_ trial.Store              = (*store.Store)(nil)
	_ web.Annotator            = (*annotation.Intake)(nil)
	_ web.Connector            = (*Server)(nil)
	_ web.Settings             = (*Server)(nil)
	_ web.Digester             = (*notify.Digester)(nil)
	_ web.Drainer              = (*drain.Drains)(nil)
	_ web.Trials               = (*trial.Trials)(nil)
)
