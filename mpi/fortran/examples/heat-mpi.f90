! Heat diffusion on a square with the module mpi: ranks form a grid, and rows, which are not contiguous, travel as a
! derived type. The first eigenfunction of the discrete Laplacian decays by the same factor in each step, so the
! result is known.
!
!   mpifort heat-mpi.f90 -o heat && mpiexec -n 4 ./heat
program heat
  use mpi
  implicit none
  integer, parameter :: n = 127, steps = 200, up = 1, down = 2, west = 3, east = 4
  double precision, parameter :: pi = 3.14159265358979324d0, rate = 0.2d0
  double precision, allocatable :: old(:,:), new(:,:)
  double precision :: h, factor, worst
  integer :: ranks, me, grid, row, step, i, j, i1, i2, j1, j2, ierr
  integer :: dims(2), place(2), peer(4), requests(8)
  logical :: periods(2)

  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  dims = 0
  call MPI_Dims_create(ranks, 2, dims, ierr)
  periods = .false.
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .true., grid, ierr)
  call MPI_Comm_rank(grid, me, ierr)
  call MPI_Cart_get(grid, 2, dims, periods, place, ierr)
  if (any(periods)) call MPI_Abort(grid, 2, ierr)
  call MPI_Cart_shift(grid, 0, 1, peer(up), peer(down), ierr)
  call MPI_Cart_shift(grid, 1, 1, peer(west), peer(east), ierr)
  i1 = place(1) * n / dims(1) + 1
  i2 = (place(1) + 1) * n / dims(1)
  j1 = place(2) * n / dims(2) + 1
  j2 = (place(2) + 1) * n / dims(2)

  h = 1d0 / (n + 1)
  allocate (old(i1-1:i2+1, j1-1:j2+1), new(i1-1:i2+1, j1-1:j2+1))
  old = 0
  do j = j1, j2
    do i = i1, i2
      old(i, j) = sin(pi * i * h) * sin(pi * j * h)
    end do
  end do
  new = old
  call MPI_Type_vector(j2 - j1 + 1, 1, i2 - i1 + 3, MPI_DOUBLE_PRECISION, row, ierr)
  call MPI_Type_commit(row, ierr)

  do step = 1, steps
    call MPI_Irecv(old(i1-1, j1), 1, row, peer(up), 1, grid, requests(1), ierr)
    call MPI_Irecv(old(i2+1, j1), 1, row, peer(down), 2, grid, requests(2), ierr)
    call MPI_Irecv(old(i1, j1-1), i2-i1+1, MPI_DOUBLE_PRECISION, peer(west), 3, grid, requests(3), ierr)
    call MPI_Irecv(old(i1, j2+1), i2-i1+1, MPI_DOUBLE_PRECISION, peer(east), 4, grid, requests(4), ierr)
    call MPI_Isend(old(i2, j1), 1, row, peer(down), 1, grid, requests(5), ierr)
    call MPI_Isend(old(i1, j1), 1, row, peer(up), 2, grid, requests(6), ierr)
    call MPI_Isend(old(i1, j2), i2-i1+1, MPI_DOUBLE_PRECISION, peer(east), 3, grid, requests(7), ierr)
    call MPI_Isend(old(i1, j1), i2-i1+1, MPI_DOUBLE_PRECISION, peer(west), 4, grid, requests(8), ierr)
    call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE, ierr)
    do j = j1, j2
      do i = i1, i2
        new(i, j) = old(i, j) + rate * (old(i-1, j) + old(i+1, j) + old(i, j-1) + old(i, j+1) - 4 * old(i, j))
      end do
    end do
    old = new
  end do
  if (any(requests /= MPI_REQUEST_NULL)) call MPI_Abort(grid, 2, ierr)
  call MPI_Type_free(row, ierr)

  factor = (1 - 8 * rate * sin(pi * h / 2)**2)**steps
  worst = 0
  do j = j1, j2
    do i = i1, i2
      worst = max(worst, abs(old(i, j) - factor * sin(pi * i * h) * sin(pi * j * h)))
    end do
  end do
  call MPI_Allreduce(MPI_IN_PLACE, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, grid, ierr)
  if (me == 0) print '(a, i0, a, es8.1)', 'heat with mpi: ', ranks, ' ranks, error ', worst
  call MPI_Comm_free(grid, ierr)
  call MPI_Finalize(ierr)
  if (.not. worst < 1d-12) error stop 'the result is wrong'
end program
