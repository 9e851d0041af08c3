-- +goose Up
-- returned_body is the error of EasyNetQ in which an attempt came back, around the body that was
-- sent; NULL = the body itself came back.
ALTER TABLE attempts ADD COLUMN returned_body BLOB;
