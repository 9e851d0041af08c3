package server

import (
	"slices"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/store"
)

// Several entries of the configuration may name the same broker and vhost. In this package, the
// place of an entry is its broker and vhost.

// inboxesAt returns the inboxes of all broker entries with the same broker and vhost. dlo requeues
// no letter to an inbox, and a drain takes no letters out of an inbox.
func inboxesAt(brokers []config.Broker, place string) []string {
	var inboxes []string
	for _, b := range brokers {
		if b.Place() == place {
			inboxes = append(inboxes, b.Inboxes...)
		}
	}
	return inboxes
}

// annotationsAt returns the queues of annotations of all broker entries with the same broker and
// vhost. No letter is requeued to such a queue, and no letter is drained from it.
func annotationsAt(brokers []config.Broker, place string) []string {
	var queues []string
	for _, b := range brokers {
		if b.Place() == place && b.Annotations != "" && !slices.Contains(queues, b.Annotations) {
			queues = append(queues, b.Annotations)
		}
	}
	return queues
}

// namesOf returns the names of all broker entries with the same broker and vhost.
func namesOf(brokers []config.Broker, place string) []string {
	var names []string
	for _, b := range brokers {
		if b.Place() == place {
			names = append(names, b.Name)
		}
	}
	return names
}

// storeBrokers returns the brokers in the form that the store uses.
func storeBrokers(brokers []config.Broker) []store.Broker {
	list, first := make([]store.Broker, len(brokers)), map[string]string{}
	for i, b := range brokers {
		if first[b.Place()] == "" {
			first[b.Place()] = b.Name
		}
		list[i] = store.Broker{Name: b.Name, Same: first[b.Place()]}
	}
	return list
}
