-- +goose Up
-- returned_body is the EasyNetQ error in which an attempt came back, wrapped around the body that
-- was sent; NULL = the body itself came back.
ALTER TABLE attempts ADD COLUMN returned_body BLOB;
