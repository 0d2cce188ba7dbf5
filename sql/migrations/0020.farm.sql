-- Which login a node's row belongs to: with sql/roles.sql a login may write its own rows only.

ALTER TABLE node ADD COLUMN login name NOT NULL DEFAULT current_user;
COMMENT ON COLUMN node.login IS 'The login that made the row, and alone may change it.';
