package server

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// usePicks starts to use the types that people picked.
func (s *Server) usePicks(ctx context.Context) error {
	list, err := s.store.Picks(ctx)
	if err != nil {
		return err
	}
	groups := map[[32]byte]string{}
	decoder := *s.decoder.Load()
	for _, p := range list {
		if p.Group != 0 {
			groups[p.GroupKey] = p.Type
		}
	}
	decoder.Bindings = bindingsOf(&s.cfg, list)
	s.picked.Store(&groups)
	s.decoder.Store(&decoder)
	return nil
}

// bindingsOf returns the bindings of people's picks, and then those of the configuration. Bindings
// that people picked have priority, because people saw the effect of their picks on their letters.
func bindingsOf(cfg *config.Config, picks []deadletter.Pick) (list []deadletter.Binding) {
	for _, p := range picks {
		if p.Group == 0 && p.Letter == "" {
			list = append(list, p.Binding)
		}
	}
	return append(list, cfg.Schemas.Bindings...)
}

// decoderOfVerdicts returns the decoder of the classifier. The classifier needs only some values of
// a body, and nobody sees the whole body, so this decoder does not convert bodies to JSON.
func (s *Server) decoderOfVerdicts() *payload.Decoder {
	d := *s.decoder.Load()
	d.NoJSON = true
	return &d
}

// reread is called after dlo has read letters again, for example with a new type. Letters may have
// moved to other groups, so reread updates the types that people picked for groups. It also wakes
// the indexer. During the call, types cannot change.
func (s *Server) reread() {
	if s.regroups {
		if err := s.usePicks(context.Background()); err != nil {
			s.log.Error("picks could not be updated for groups that letters have moved to", "err", err)
		}
	}
	s.indexer.Wake()
}

func (s *Server) decoderNow() *payload.Decoder   { return s.decoder.Load() }
func (s *Server) pickedNow() map[[32]byte]string { return *s.picked.Load() }

func boundTo(glob, queue string) bool { return deadletter.Binding{Queue: glob}.Fits(queue, "") }

// AddPick saves a type that a person picked, and starts to use it. The letters to which it applies
// are read again.
func (s *Server) AddPick(ctx context.Context, p deadletter.Pick) (deadletter.Pick, error) {
	err := s.reader.Between(func() (err error) {
		if p, err = s.store.AddPick(ctx, p, boundTo); err != nil {
			return err
		}
		return s.usePicks(context.WithoutCancel(ctx)) // a stored pick is used even if the caller no longer waits
	})
	return p, err
}

// RemovePick removes a pick. The letters to which it applied are read again.
func (s *Server) RemovePick(ctx context.Context, id int64, by string) error {
	return s.reader.Between(func() error {
		if err := s.store.RemovePick(ctx, id, by, boundTo); err != nil {
			return err
		}
		return s.usePicks(context.WithoutCancel(ctx))
	})
}
