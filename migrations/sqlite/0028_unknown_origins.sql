-- +goose Up

-- A letter of unknown origin belongs to who may see its inbox. Its origin is the negated id of the
-- inbox. Such an origin has no names; its vhost is its id, which keeps these rows apart.
INSERT INTO origins (id, broker, vhost, queue) SELECT -id, '', CAST(-id AS TEXT), '' FROM inboxes;
