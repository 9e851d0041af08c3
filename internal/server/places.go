package server

import (
	"slices"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/store"
)

// Several entries of the configuration may lead to one broker and vhost, its place.

// inboxesAt returns the inboxes of a place, whichever entries name them: no letter is requeued to
// one.
func inboxesAt(brokers []config.Broker, place string) []string {
	var inboxes []string
	for _, b := range brokers {
		if b.Place() == place {
			inboxes = append(inboxes, b.Inboxes...)
		}
	}
	return inboxes
}

// annotationsAt returns the queues of annotations of a place: no letter is requeued to one, and
// none is drained.
func annotationsAt(brokers []config.Broker, place string) []string {
	var queues []string
	for _, b := range brokers {
		if b.Place() == place && b.Annotations != "" && !slices.Contains(queues, b.Annotations) {
			queues = append(queues, b.Annotations)
		}
	}
	return queues
}

// namesOf returns what a place is called in the configuration.
func namesOf(brokers []config.Broker, place string) []string {
	var names []string
	for _, b := range brokers {
		if b.Place() == place {
			names = append(names, b.Name)
		}
	}
	return names
}

// named are the brokers as the store knows them.
func named(brokers []config.Broker) []store.Broker {
	list, first := make([]store.Broker, len(brokers)), map[string]string{}
	for i, b := range brokers {
		if first[b.Place()] == "" {
			first[b.Place()] = b.Name
		}
		list[i] = store.Broker{Name: b.Name, Was: b.Was, Same: first[b.Place()]}
	}
	return list
}
