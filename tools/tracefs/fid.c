/* Fids, the numbers that 9P gives to files: fid.h. */
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <string.h>

#include "fid.h"
#include "p9.h"

const char *fid_left_out;
static bool fids[FIDS]; /* numbers in use, under `lock` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t fid_new(void)
{
	uint32_t n;

	pthread_mutex_lock(&lock);
	for (n = P9_ROOT + 1; n < FIDS - 1 && fids[n]; n++)
		;
	fids[n] = true;
	pthread_mutex_unlock(&lock);
	return n;
}

static void fid_free(uint32_t fid)
{
	pthread_mutex_lock(&lock);
	fids[fid] = false;
	pthread_mutex_unlock(&lock);
}

int fid_clunk(uint32_t fid)
{
	struct p9_msg m;
	int err;

	p9_begin(&m, P9_TCLUNK);
	p9_put(&m, fid, 4);
	err = p9_call(&m);
	fid_free(fid);
	return err;
}

bool fid_is_left_out(const char *name)
{
	return fid_left_out && *name && !fnmatch(fid_left_out, name, 0);
}

int fid_walk(const char *path, size_t n, uint32_t *fid)
{
	const char *end = path + n, *name, *slash;
	uint32_t names = 0, count_at;
	struct p9_msg m;
	int err;

	if (!path[n] && fid_is_left_out(strrchr(path, '/') + 1))
		return -ENOENT;
	*fid = fid_new();
	p9_begin(&m, P9_TWALK);
	p9_put(&m, P9_ROOT, 4);
	p9_put(&m, *fid, 4);
	count_at = m.at;
	p9_put(&m, 0, 2);
	for (name = path; name < end; name = slash + 1) {
		slash = memchr(name, '/', end - name);
		slash = slash ? slash : end;
		if (slash == name)
			continue;
		if (slash - name > 255 || ++names > 16) {
			fid_free(*fid);
			return -ENAMETOOLONG;
		}
		p9_put_text(&m, name, slash - name);
	}
	m.buf[count_at] = names;
	err = p9_call(&m);
	if (!err && p9_get(m.buf, 7, 2) != names)
		err = -ENOENT;
	if (err)
		fid_free(*fid);
	return err;
}
